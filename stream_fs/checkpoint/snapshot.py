"""A snapshot: the whole model as a manifest and parts that fit into Kafka messages.

The parts are one run of bytes cut to length: the state's arrays one after another, raw and
little-endian, then the pipeline's `extra` as MessagePack. It stands there and not in the manifest
because it grows with the number of features.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from stream_fs.checkpoint.compatibility import difference
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
"""Largest part and largest manifest: below 1 MB, Kafka's default limit, with room for headers."""


def part_bytes(largest_message: int) -> int:
    """Bytes of the largest part and the largest manifest, given the limit of a message's value."""
    return min(PART_BYTES, largest_message)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A model as bytes: a manifest, and parts of which the order matters."""

    manifest: bytes
    parts: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Restored:
    """What came out of a snapshot.

    `state` carries the parameters that were expected. `fingerprint` is that of the parameters it
    was made with: where it differs from theirs, something changed that a model survives.
    """

    state: State
    next_offset: int
    extra: dict[str, Any]
    fingerprint: str


class Parts:
    """The parts of a snapshot, as they come: each is hashed while the next is still on its way."""

    def __init__(self, parts: Iterable[bytes] = ()) -> None:
        self.found: list[bytes] = []
        self._hashed = hashlib.sha256()
        for part in parts:
            self.add(part)

    def __len__(self) -> int:
        return len(self.found)

    def add(self, part: bytes) -> None:
        """The next one."""
        self.found.append(part)
        self._hashed.update(part)

    @property
    def checksum(self) -> bytes:
        """Of all of them."""
        return self._hashed.digest()


def encode(
    state: State, next_offset: int, extra: Mapping[str, Plain], *, part_bytes: int = PART_BYTES
) -> Snapshot:
    """The model after a chunk; equal arguments give equal bytes. Every number is copied once.

    `next_offset` is the offset of the first input record that is not in the state; `extra` is
    whatever else is needed to continue. Raises `InvalidParameter` where the manifest, which grows
    with the number of views but not with the data, would be too large.
    """
    description, arrays = flatten(state)
    parts = _cut([*map(_raw, arrays.values()), memoryview(pack(extra))], part_bytes)
    manifest = write_manifest(
        Manifest(
            fingerprint=state.params.fingerprint,
            params=_unlabelled(description["params"]),
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
        params=_unlabelled(description["params"]),
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


def decode(manifest: bytes, parts: Parts | Sequence[bytes], expected: Params) -> Restored:
    """The inverse of `encode`, under the present parameters; every number is copied once.

    Raises `CorruptSnapshot`, `UnknownSnapshotVersion` or, where the sums would mean something else
    under `expected`, `ConfigurationChanged`; for any bytes nothing else. Memory is bounded by the
    bytes handed in and by the size of a state with the expected parameters.
    """
    found = read_manifest(manifest)
    if not isinstance(parts, Parts):
        parts = Parts(parts)
    _check_parts(found, parts)
    differences = difference(found.params, expected)
    if differences:
        raise ConfigurationChanged(differences)
    source = _Source(parts.found)
    arrays = {entry.name: source.array(entry.shape) for entry in found.arrays}
    description = {
        "params": expected.to_dict(),
        "origin": found.origin,
        "j": found.j,
        "total": found.total,
        "chunk": found.chunk,
    }
    try:
        extra = mapping(unpack(source.rest()))
        state = unflatten(description, arrays)
    except (Malformed, IncompatibleState) as error:
        raise CorruptSnapshot(f"the snapshot cannot be used: {error}") from error
    return Restored(state, found.next_offset, extra, found.fingerprint)


def _entries(arrays: Mapping[str, Floats]) -> tuple[ArrayEntry, ...]:
    """Positions of arrays that are stored one after the other."""
    entries: list[ArrayEntry] = []
    for name, array in arrays.items():
        entries.append(ArrayEntry(name, array.shape, entries[-1].end if entries else 0))
    return tuple(entries)


def _unlabelled(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters without the names of features."""
    views = [
        {key: value for key, value in view.items() if key != "names"} for view in params["views"]
    ]
    return {**params, "views": views}


def _raw(array: Floats) -> memoryview:
    """The bytes of an array, row after row; without a copy on the usual machine."""
    return np.ascontiguousarray(array, DTYPE).reshape(-1).view(np.uint8).data


def _cut(buffers: Iterable[memoryview], length: int) -> tuple[bytes, ...]:
    """All buffers laid end to end, cut into pieces of this length; only the last is shorter."""
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
    size = sum(map(len, parts.found))
    if size != manifest.size:
        raise CorruptSnapshot(f"the snapshot's parts hold {size} of their {manifest.size} bytes")
    if parts.checksum != manifest.checksum:
        raise CorruptSnapshot(
            "the checksum of the snapshot's parts does not match: one of them is altered, of "
            "another snapshot, or in the wrong place"
        )


class _Source:
    """Reads the parts, which have been checked, as one run of bytes."""

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
        """All that has not been read."""
        return b"".join(reversed(self._views))
