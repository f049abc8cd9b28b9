"""Progress records: the last published chunk or merged ranking, written with every transaction.

The progress record alone determines where to continue. From its snapshot, the chunks up to the
published one are replayed; the last replayed ranking should have the digest of the record.

Version 2 names the owner. Version 1, of a legacy state, does not; a release that writes version 1
rejects version 2, so that it cannot continue from a migrated state.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from stream_fs.checkpoint import keys
from stream_fs.checkpoint.fields import (
    LARGEST,
    Malformed,
    Plain,
    field,
    mapping,
    pack,
    unpack,
    whole,
)
from stream_fs.checkpoint.keys import Owner
from stream_fs.errors import CorruptProgress, UnknownProgressVersion
from stream_fs.selector.parameters import Params

VERSION: Final = 2
LEGACY_VERSION: Final = 1

_DIGEST: Final = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class SnapshotPlace:
    """The place of a snapshot: its number, its last chunk, and its offset.

    The offset is that of the manifest in the state partition; the parts follow it.
    """

    number: int
    chunk: int
    offset: int

    @property
    def slot(self) -> int:
        """The slot in its keys."""
        return keys.slot(self.number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """After a chunk: its number and the offsets [from_offset, next_offset) of its ranking.

    `snapshots` are the last two, the newest first: the other one is read where it is damaged.
    `digest` is that of the published ranking, None where none was published. `fingerprint` is that
    of the parameters. `owner` is None in a legacy state.
    """

    chunk: int
    from_offset: int
    next_offset: int
    snapshots: tuple[SnapshotPlace, ...]
    digest: str | None
    fingerprint: str
    owner: keys.Owner | None


def encode_progress(progress: Progress) -> bytes:
    """The record's bytes."""
    return pack(
        {
            **encode_owner(progress.owner),
            "chunk": progress.chunk,
            "from": progress.from_offset,
            "next": progress.next_offset,
            "snapshots": [
                {"number": place.number, "chunk": place.chunk, "offset": place.offset}
                for place in progress.snapshots
            ],
            "digest": progress.digest,
            "fingerprint": progress.fingerprint,
        }
    )


def decode_progress(data: bytes) -> Progress:
    """The inverse of `encode_progress`; `CorruptProgress` or `UnknownProgressVersion`."""
    try:
        record = mapping(unpack(data))
        return _progress(record, decode_owner(record, "progress record"))
    except Malformed as error:
        raise CorruptProgress(f"the progress record cannot be used: {error}") from error


def encode_owner(owner: keys.Owner | None) -> dict[str, Plain]:
    """The first fields of a progress record: the version and, unless legacy, the owner."""
    if owner is None:
        return {"v": LEGACY_VERSION}
    return {"v": VERSION, "stream": owner.stream, "group": owner.group}


def decode_owner(record: Mapping[str, Any], item: str) -> keys.Owner | None:
    """The inverse of `encode_owner`; `UnknownProgressVersion` for a later release."""
    version = whole(record, "v")
    if version == LEGACY_VERSION:
        return None
    if version != VERSION:
        raise UnknownProgressVersion(item, version, VERSION)
    return keys.Owner(field(record, "stream", str), field(record, "group", str))


def encode_marker(owner: keys.Owner) -> bytes:
    """A record of the owner alone; releases that write version 1 reject it."""
    return pack(encode_owner(owner))


def marker_owner(data: bytes) -> keys.Owner | None:
    """The owner in a marker or a progress record; None in a legacy record."""
    try:
        return decode_owner(mapping(unpack(data)), "progress record")
    except Malformed as error:
        raise CorruptProgress(f"the progress record cannot be used: {error}") from error


def _progress(record: Mapping[str, Any], owner: keys.Owner | None) -> Progress:
    progress = Progress(
        chunk=whole(record, "chunk"),
        from_offset=whole(record, "from"),
        next_offset=whole(record, "next"),
        snapshots=_places(record),
        digest=_digest(record),
        fingerprint=field(record, "fingerprint", str),
        owner=owner,
    )
    if progress.next_offset < progress.from_offset:
        raise Malformed("next is less than from")
    return progress


def _places(record: Mapping[str, Any]) -> tuple[SnapshotPlace, ...]:
    places = field(record, "snapshots", list)
    if not 1 <= len(places) <= keys.SLOTS:
        raise Malformed(f"{len(places)} snapshots")
    return tuple(
        SnapshotPlace(whole(place, "number"), whole(place, "chunk"), whole(place, "offset"))
        for place in map(mapping, places)
    )


def _digest(record: Mapping[str, Any]) -> str | None:
    if record.get("digest") is None:
        return None
    text: str = field(record, "digest", str)
    if _DIGEST.fullmatch(text) is None:
        raise Malformed("digest is not a SHA-256 in hexadecimal")
    return text


class MergedPart(NamedTuple):
    """A partition in a merged ranking, as of this chunk."""

    topic: str
    partition: int
    chunk: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeProgress:
    """After a merged ranking: its number, its partitions, and the published features by view.

    The features are in the order of their indices: one bit per feature is stored. `fingerprint` is
    that of the parameters, `owner` None in a legacy state.
    """

    sequence: int
    parts: tuple[MergedPart, ...]
    chosen: Mapping[str, tuple[int, ...]]
    fingerprint: str
    owner: Owner | None


def encode_merge_progress(progress: MergeProgress) -> bytes:
    """The record's bytes."""
    return pack(
        {
            **encode_owner(progress.owner),
            "sequence": progress.sequence,
            "parts": [list(part) for part in progress.parts],
            "chosen": {name: _bits(features) for name, features in progress.chosen.items()},
            "fingerprint": progress.fingerprint,
        }
    )


def largest_merge_progress(params: Params, owner: Owner, topic: str, partitions: int) -> int:
    """Upper bound of the bytes of a record with this number of partitions of a topic."""
    return len(
        encode_merge_progress(
            MergeProgress(
                sequence=LARGEST,
                parts=(MergedPart(topic, LARGEST, LARGEST),) * partitions,
                chosen={view.name: (view.dimension - 1,) for view in params.views},
                fingerprint=params.fingerprint,
                owner=owner,
            )
        )
    )


def decode_merge_progress(data: bytes) -> MergeProgress:
    """The inverse of `encode_merge_progress`; `CorruptProgress` or `UnknownProgressVersion`."""
    try:
        record = mapping(unpack(data))
        owner = decode_owner(record, "progress record of the merge")
        return MergeProgress(
            sequence=whole(record, "sequence"),
            parts=tuple(_part(row) for row in field(record, "parts", list)),
            chosen=_chosen(field(record, "chosen", dict)),
            fingerprint=field(record, "fingerprint", str),
            owner=owner,
        )
    except Malformed as error:
        raise CorruptProgress(
            f"the progress record of the merge cannot be used: {error}"
        ) from error


def _part(row: object) -> MergedPart:
    match row:
        case [str(topic), int(partition), int(chunk)] if partition >= 0 and chunk >= 1:
            return MergedPart(topic, partition, chunk)
    raise Malformed("a part is not topic, partition, chunk")


def _chosen(fields: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {name: _features(field(fields, name, bytes)) for name in fields}


def _bits(features: Sequence[int]) -> bytes:
    """One bit per feature, up to the last chosen one."""
    flags = np.zeros(max(features, default=-1) + 1, np.bool_)
    flags[list(features)] = True
    return np.packbits(flags).tobytes()


def _features(bits: bytes) -> tuple[int, ...]:
    return tuple(np.flatnonzero(np.unpackbits(np.frombuffer(bits, np.uint8))).tolist())
