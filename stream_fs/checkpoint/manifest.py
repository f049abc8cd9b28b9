"""The manifest of a snapshot: everything about it but the numbers.

    {v: version, sha256: of the body, body: MessagePack within MessagePack}

The version stands outside, so that whatever a later format looks like, this release can name it.
The body has a checksum of its own, so that an altered offset is found as surely as an altered
array, before any part has been fetched.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from stream_fs.checkpoint.fields import Malformed, field, finite, mapping, pack, unpack, whole
from stream_fs.errors import CorruptSnapshot, UnknownSnapshotVersion

VERSION: Final = 1

DTYPE: Final = "<f8"
"""Of every array: little-endian, 64 bits."""

AXES: Final = 2
"""Of an array, at most."""


@dataclass(frozen=True, slots=True)
class ArrayEntry:
    """Where an array lies in the parts laid end to end, row after row."""

    name: str
    shape: tuple[int, ...]
    offset: int

    @property
    def end(self) -> int:
        """Offset of the first byte behind it."""
        return self.offset + 8 * math.prod(self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a snapshot says of itself.

    `params` are the parameters as plain data, to compare with, without feature names (labels, and
    there may be many); `fingerprint` is that of all of them. `origin`, `j`, `total` and `chunk` are
    the state's; `chunk` is the number of the last chunk in it, `next_offset` the offset of the
    first input record that is not. The parts are `parts` in number with `size` bytes together and
    the SHA-256 `checksum`: the arrays without gaps, then the pipeline's own data.
    """

    fingerprint: str
    params: Mapping[str, Any]
    origin: str
    j: float
    total: int
    chunk: int
    next_offset: int
    parts: int
    size: int
    checksum: bytes
    arrays: tuple[ArrayEntry, ...]


def write_manifest(manifest: Manifest) -> bytes:
    """The manifest's bytes."""
    body = pack(
        {
            "fingerprint": manifest.fingerprint,
            "params": manifest.params,
            "origin": manifest.origin,
            "j": manifest.j,
            "total": manifest.total,
            "chunk": manifest.chunk,
            "next_offset": manifest.next_offset,
            "parts": manifest.parts,
            "size": manifest.size,
            "checksum": manifest.checksum,
            "arrays": [[entry.name, DTYPE, entry.shape, entry.offset] for entry in manifest.arrays],
        }
    )
    return pack({"v": VERSION, "sha256": hashlib.sha256(body).digest(), "body": body})


def read_manifest(data: bytes) -> Manifest:
    """The inverse of `write_manifest`; `CorruptSnapshot` or `UnknownSnapshotVersion`.

    What it returns is consistent in itself: the arrays follow each other without gaps and fit into
    `size`. Whether it fits the parts and the configuration is for `decode` to say.
    """
    try:
        envelope = mapping(unpack(data))
        version = whole(envelope, "v")
        if version != VERSION:
            raise UnknownSnapshotVersion("snapshot", version, VERSION)
        body = field(envelope, "body", bytes)
        if field(envelope, "sha256", bytes) != hashlib.sha256(body).digest():
            raise Malformed("its checksum does not match")
        return _manifest(mapping(unpack(body)))
    except Malformed as error:
        raise CorruptSnapshot(f"the manifest of the snapshot cannot be used: {error}") from error


def _manifest(body: Mapping[str, Any]) -> Manifest:
    size = whole(body, "size")
    return Manifest(
        fingerprint=field(body, "fingerprint", str),
        params=_params(field(body, "params", dict)),
        origin=field(body, "origin", str),
        j=finite(body, "j"),
        total=whole(body, "total"),
        chunk=whole(body, "chunk"),
        next_offset=whole(body, "next_offset"),
        parts=whole(body, "parts"),
        size=size,
        checksum=field(body, "checksum", bytes),
        arrays=_arrays(field(body, "arrays", list), size),
    )


def _params(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters in the form that `difference` takes."""
    for view in field(params, "views", list):
        field(mapping(view), "name", str)
    return params


def _arrays(table: list[Any], size: int) -> tuple[ArrayEntry, ...]:
    entries = []
    end = 0
    for row in table:
        entry = _entry(row)
        if entry.offset != end:
            raise Malformed(f"array {entry.name!r} does not follow the one before it")
        end = entry.end
        entries.append(entry)
    if end > size:
        raise Malformed(f"its arrays need {end} bytes, its parts hold {size}")
    return tuple(entries)


def _entry(row: object) -> ArrayEntry:
    match row:
        case [str(name), str(dtype), [*lengths], int(offset)] if dtype == DTYPE:
            shape = tuple(length for length in lengths if type(length) is int and length > 0)
            if len(shape) == len(lengths) <= AXES:
                return ArrayEntry(name, shape, offset)
    raise Malformed("a row of its array table is not name, type, shape, offset")
