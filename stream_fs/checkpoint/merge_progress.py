"""The progress record of the merge: the last merged ranking, and what it was made from.

Written in one transaction with the ranking; the next owner of the merge continues from it. Versions
are those of the progress record of a partition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from stream_fs.checkpoint.keys import Owner
from stream_fs.checkpoint.plain import LARGEST, Malformed, field, mapping, pack, unpack, whole
from stream_fs.checkpoint.progress import decode_owner, encode_owner
from stream_fs.errors import CorruptProgress
from stream_fs.selector.params import Params


class MergedPart(NamedTuple):
    """A partition that went into a merged ranking, as of this chunk."""

    topic: str
    partition: int
    chunk: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeProgress:
    """After a merged ranking: its number, its parts, and the features of each view that it has.

    The features are in the order of their indices: only which ones they are is kept, a bit each.
    `fingerprint` is that of the parameters that made it, `owner` None in a legacy state.
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
    """Upper bound of the bytes of a record that lists so many partitions of a topic."""
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
    raise Malformed("one of its parts is not topic, partition, chunk")


def _chosen(fields: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {name: _features(field(fields, name, bytes)) for name in fields}


def _bits(features: Sequence[int]) -> bytes:
    """A bit for every feature up to the last one that is chosen."""
    flags = np.zeros(max(features, default=-1) + 1, np.bool_)
    flags[list(features)] = True
    return np.packbits(flags).tobytes()


def _features(bits: bytes) -> tuple[int, ...]:
    return tuple(np.flatnonzero(np.unpackbits(np.frombuffer(bits, np.uint8))).tolist())
