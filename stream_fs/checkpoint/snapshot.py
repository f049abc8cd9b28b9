"""A snapshot: the whole model as a manifest and parts that fit into Kafka messages.

The parts are a sequence of bytes, divided: the arrays of the state one after another, raw and
little-endian, then the `extra` data of the pipeline as MessagePack. It is not in the manifest
because it grows with the number of features.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from stream_fs.checkpoint.compatibility import incompatible_changes
from stream_fs.checkpoint.fields import LARGEST, Malformed, Plain, mapping, pack, unpack
from stream_fs.checkpoint.manifest import (
    DTYPE,
    ArrayEntry,
    Manifest,
    read_manifest,
    write_manifest,
)
from stream_fs.errors import (
    ConfigurationChanged,
    CorruptSnapshot,
    IncompatibleState,
    InvalidParameter,
)
from stream_fs.selector.arrays import Floats
from stream_fs.selector.parameters import Params
from stream_fs.selector.state import State, flatten, outline, unflatten

PART_BYTES: Final = 900_000
"""Largest part and largest manifest: below Kafka's default limit of 1 MB, with room for headers."""


def part_bytes(largest_message: int) -> int:
    """Bytes of the largest part and the largest manifest, given the limit of a message value."""
    return min(PART_BYTES, largest_message)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A model as bytes: a manifest, and parts in order."""

    manifest: bytes
    parts: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Restored:
    """The content of a snapshot.

    `state` has the expected parameters. `fingerprint` is that of the parameters of the snapshot:
    where they differ, the change was compatible.
    """

    state: State
    next_offset: int
    extra: dict[str, Any]
    fingerprint: str


class Parts:
    """The received parts of a snapshot; each is hashed while the next is being fetched."""

    def __init__(self, parts: Iterable[bytes] = ()) -> None:
        self.received: list[bytes] = []
        self._hash = hashlib.sha256()
        for part in parts:
            self.add(part)

    def __len__(self) -> int:
        return len(self.received)

    def add(self, part: bytes) -> None:
        """Add the next part."""
        self.received.append(part)
        self._hash.update(part)

    @property
    def checksum(self) -> bytes:
        """SHA-256 of all parts."""
        return self._hash.digest()


def encode_snapshot(
    state: State, next_offset: int, extra: Mapping[str, Plain], *, part_bytes: int = PART_BYTES
) -> Snapshot:
    """The model after a chunk; equal arguments give equal bytes. Every number is copied once.

    `next_offset` is the offset of the first input record after the state; `extra` is other data
    that is needed to continue. Raises `InvalidParameter` where the manifest, which grows with the
    number of views but not with the data, would be too large.
    """
    description, arrays = flatten(state)
    parts = _divide([*map(_bytes_of, arrays.values()), memoryview(pack(extra))], part_bytes)
    manifest = write_manifest(
        Manifest(
            fingerprint=state.params.fingerprint,
            params=_without_names(description["params"]),
            origin=state.origin,
            j=state.j,
            total=state.total,
            chunk=state.chunk,
            next_offset=next_offset,
            parts=len(parts),
            size=sum(map(len, parts)),
            checksum=Parts(parts).checksum,
            arrays=_entries(arrays),
        )
    )
    if len(manifest) > part_bytes:
        raise InvalidParameter(
            f"{len(state.params.views)} views make the manifest of a snapshot {len(manifest)} "
            f"bytes long, more than the {part_bytes} of one message: declare fewer views"
        )
    return Snapshot(manifest, parts)


def largest_manifest(params: Params, origin: str) -> int:
    """Upper bound of the bytes of a manifest with these parameters and this origin."""
    description, arrays = flatten(outline(params, origin))
    manifest = Manifest(
        fingerprint=params.fingerprint,
        params=_without_names(description["params"]),
        origin=origin,
        j=0.0,
        total=LARGEST,
        chunk=LARGEST,
        next_offset=LARGEST,
        parts=LARGEST,
        size=LARGEST,
        checksum=Parts().checksum,
        arrays=_entries(arrays),
    )
    return len(write_manifest(manifest))


def decode_snapshot(manifest: bytes, parts: Parts | Sequence[bytes], expected: Params) -> Restored:
    """The inverse of `encode_snapshot`, under the present parameters; numbers are copied once.

    Raises `CorruptSnapshot`, `UnknownSnapshotVersion` or, where the sums would have another meaning
    under `expected`, `ConfigurationChanged`; no other error for any bytes. Memory is bounded by the
    given bytes and by the size of a state with the expected parameters.
    """
    description = read_manifest(manifest)
    if not isinstance(parts, Parts):
        parts = Parts(parts)
    _check_parts(description, parts)
    changes = incompatible_changes(description.params, expected)
    if changes:
        raise ConfigurationChanged(changes)
    reader = _PartReader(parts.received)
    arrays = {entry.name: reader.array(entry.shape) for entry in description.arrays}
    scalars = {
        "params": expected.to_dict(),
        "origin": description.origin,
        "j": description.j,
        "total": description.total,
        "chunk": description.chunk,
    }
    try:
        extra = mapping(unpack(reader.rest()))
        state = unflatten(scalars, arrays)
    except (Malformed, IncompatibleState) as error:
        raise CorruptSnapshot(f"the snapshot cannot be used: {error}") from error
    return Restored(state, description.next_offset, extra, description.fingerprint)


def _entries(arrays: Mapping[str, Floats]) -> tuple[ArrayEntry, ...]:
    """The places of arrays that are stored one after another."""
    entries: list[ArrayEntry] = []
    for name, array in arrays.items():
        entries.append(ArrayEntry(name, array.shape, entries[-1].end if entries else 0))
    return tuple(entries)


def _without_names(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters without feature names."""
    views = [
        {key: value for key, value in view.items() if key != "names"} for view in params["views"]
    ]
    return {**params, "views": views}


def _bytes_of(array: Floats) -> memoryview:
    """The bytes of an array, row-major; not copied on a little-endian machine."""
    return np.ascontiguousarray(array, DTYPE).reshape(-1).view(np.uint8).data


def _divide(buffers: Iterable[memoryview], length: int) -> tuple[bytes, ...]:
    """The concatenated buffers in parts of this length; only the last is shorter."""
    parts: list[bytes] = []
    pieces: list[memoryview] = []
    room = length
    for buffer in buffers:
        start = 0
        while start < len(buffer):
            piece = buffer[start : start + room]
            pieces.append(piece)
            start += len(piece)
            room -= len(piece)
            if room == 0:
                parts.append(b"".join(pieces))
                pieces, room = [], length
    if pieces:
        parts.append(b"".join(pieces))
    return tuple(parts)


def _check_parts(manifest: Manifest, parts: Parts) -> None:
    if len(parts) != manifest.parts:
        raise CorruptSnapshot(f"the snapshot has {len(parts)} of its {manifest.parts} parts")
    size = sum(map(len, parts.received))
    if size != manifest.size:
        raise CorruptSnapshot(f"the parts of the snapshot have {size} of {manifest.size} bytes")
    if parts.checksum != manifest.checksum:
        raise CorruptSnapshot(
            "the checksum of the parts of the snapshot does not match: a part is altered, in the "
            "wrong place, or of another snapshot"
        )


class _PartReader:
    """Reads checked parts as one sequence of bytes."""

    def __init__(self, parts: Sequence[bytes]) -> None:
        self._views = [memoryview(part) for part in parts]
        self._views.reverse()

    def array(self, shape: tuple[int, ...]) -> Floats:
        """The next array, in memory of its own."""
        array = np.empty(shape, DTYPE)
        target = array.reshape(-1).view(np.uint8).data
        while len(target):
            part = self._views.pop()
            taken = part[: len(target)]
            target[: len(taken)] = taken
            target = target[len(taken) :]
            if len(taken) < len(part):
                self._views.append(part[len(taken) :])
        return array.astype(np.float64, copy=False)

    def rest(self) -> bytes:
        """The unread bytes."""
        return b"".join(reversed(self._views))
