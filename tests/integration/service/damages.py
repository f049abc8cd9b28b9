"""Damages of the records of a snapshot, manifest first."""

from __future__ import annotations

from collections.abc import Sequence

import msgpack

from tests.integration.service.state import Record


def torn(snapshot: Sequence[Record]) -> Sequence[Record]:
    *first, (key, value) = snapshot
    return [*first, (key, (value or b"")[:-1])]


def altered(snapshot: Sequence[Record]) -> Sequence[Record]:
    *first, (key, value) = snapshot
    return [*first, (key, _flipped(value, 100))]


def altered_manifest(snapshot: Sequence[Record]) -> Sequence[Record]:
    (key, value), *parts = snapshot
    return [(key, _flipped(value, 200)), *parts]


def without_parts(snapshot: Sequence[Record]) -> Sequence[Record]:
    return snapshot[:1]


def removed(snapshot: Sequence[Record]) -> Sequence[Record]:
    return [(key, None) for key, _ in snapshot]


def of_another_release(snapshot: Sequence[Record]) -> Sequence[Record]:
    (key, value), *parts = snapshot
    return [(key, msgpack.packb({**msgpack.unpackb(value or b""), "v": 99})), *parts]


def _flipped(value: bytes | None, at: int) -> bytes:
    data = bytearray(value or b"")
    data[at] ^= 1
    return bytes(data)
