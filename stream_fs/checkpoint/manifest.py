"""The manifest of a snapshot: its description, without the arrays.

    {v: version, sha256: of the body, body: MessagePack within MessagePack}

The version is outside the body, so that this release can name the version of any later format. The
body has a checksum of its own, so that an altered offset is detected as reliably as an altered
array, before any part is fetched.
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
"""Type of every array: little-endian, 64 bits."""

MAX_AXES: Final = 2
"""Most dimensions of an array."""


@dataclass(frozen=True, slots=True)
class ArrayEntry:
    """The place of an array in the concatenated parts; row-major."""

    name: str
    shape: tuple[int, ...]
    offset: int

    @property
    def end(self) -> int:
        """Offset of the first byte after it."""
        return self.offset + 8 * math.prod(self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The description of a snapshot.

    `params` are the parameters as plain data, for comparison, without feature names (labels, and
    there may be many); `fingerprint` is that of all parameters. `origin`, `j`, `total` and `chunk`
    are those of the state: `chunk` is the number of its last chunk, `next_offset` the offset of the
    first input record after it. There are `parts` parts of `size` bytes together, with the SHA-256
    `checksum`: the arrays without gaps, then the data of the pipeline.
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

    The result is consistent in itself: the arrays follow each other without gaps and fit into
    `size`. `decode_snapshot` compares it with the parts and the configuration.
    """
    try:
        envelope = mapping(unpack(data))
        version = whole(envelope, "v")
        if version != VERSION:
            raise UnknownSnapshotVersion("snapshot", version, VERSION)
        body = field(envelope, "body", bytes)
        if field(envelope, "sha256", bytes) != hashlib.sha256(body).digest():
            raise Malformed("the checksum does not match")
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
    """Parameters in the form that `incompatible_changes` expects."""
    for view in field(params, "views", list):
        field(mapping(view), "name", str)
    return params


def _arrays(table: list[Any], size: int) -> tuple[ArrayEntry, ...]:
    entries = []
    end = 0
    for row in table:
        entry = _entry(row)
        if entry.offset != end:
            raise Malformed(f"array {entry.name!r} does not follow the previous one")
        end = entry.end
        entries.append(entry)
    if end > size:
        raise Malformed(f"the arrays take {end} bytes, the parts have {size}")
    return tuple(entries)


def _entry(row: object) -> ArrayEntry:
    match row:
        case [str(name), str(dtype), [*lengths], int(offset)] if dtype == DTYPE:
            shape = tuple(length for length in lengths if type(length) is int and length > 0)
            if len(shape) == len(lengths) <= MAX_AXES:
                return ArrayEntry(name, shape, offset)
    raise Malformed("an array entry is not name, type, shape, offset")
