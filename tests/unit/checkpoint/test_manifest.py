"""The bytes of a manifest, written by hand: another format is another version."""

from __future__ import annotations

import hashlib

import msgpack

from stream_fs.checkpoint.manifest import ArrayEntry, Manifest, read_manifest, write_manifest


def test_manifest() -> None:
    manifest = Manifest(
        fingerprint="00ff",
        params={"views": [{"name": "v"}], "clusters": 2},
        origin="in/3",
        j=1.5,
        total=2,
        chunk=1,
        next_offset=9,
        parts=1,
        size=40,
        checksum=bytes(32),
        arrays=(ArrayEntry("alpha", (1,), 0), ArrayEntry("0.R", (2, 2), 8)),
    )
    body = msgpack.packb(
        {
            "fingerprint": "00ff",
            "params": {"views": [{"name": "v"}], "clusters": 2},
            "origin": "in/3",
            "j": 1.5,
            "total": 2,
            "chunk": 1,
            "next_offset": 9,
            "parts": 1,
            "size": 40,
            "checksum": bytes(32),
            "arrays": [["alpha", "<f8", [1], 0], ["0.R", "<f8", [2, 2], 8]],
        }
    )
    data = msgpack.packb({"v": 1, "sha256": hashlib.sha256(body).digest(), "body": body})
    assert write_manifest(manifest) == data
    assert read_manifest(data) == manifest
