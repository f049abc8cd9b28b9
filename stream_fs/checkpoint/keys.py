"""Keys of the state topic: which record of it holds what.

    topic/partition/progress
    topic/partition/slot/manifest
    topic/partition/slot/part
    merge/progress

Snapshots take the two slots in turn, so that the previous one stays whole in the compacted topic
until the new one is. Topic and partition are those of the input. The progress of the merge, one for
the whole stream, lies in the first partition of its first topic; its key has a part less than any
other, so that no topic's name can make them the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

SLOTS: Final = 2
MERGE_KEY: Final = b"merge/progress"

_KEY: Final = re.compile(
    rb"(?P<topic>[A-Za-z0-9._-]{1,249})/(?P<partition>0|[1-9][0-9]{0,9})/"
    rb"(?:progress|(?P<slot>[01])/(?:manifest|(?P<part>0|[1-9][0-9]{0,9})))"
)


@dataclass(frozen=True, slots=True)
class Key:
    """A key taken apart: progress has no slot, a manifest has a slot but is no part."""

    topic: str
    partition: int
    slot: int | None = None
    part: int | None = None

    @property
    def holds(self) -> Literal["progress", "manifest", "part"]:
        """What the record with this key is."""
        if self.slot is None:
            return "progress"
        return "manifest" if self.part is None else "part"


def slot(snapshot: int) -> int:
    """The slot of a snapshot by its number."""
    return snapshot % SLOTS


def progress_key(topic: str, partition: int) -> bytes:
    """The key of a partition's progress record."""
    return f"{topic}/{partition}/progress".encode()


def manifest_key(topic: str, partition: int, slot: int) -> bytes:
    """The key of a snapshot's manifest."""
    return f"{topic}/{partition}/{slot}/manifest".encode()


def part_key(topic: str, partition: int, slot: int, part: int) -> bytes:
    """The key of one part of a snapshot; parts count from 0."""
    return f"{topic}/{partition}/{slot}/{part}".encode()


def parse_key(key: bytes) -> Key | None:
    """What a key stands for; None where none of these functions made it."""
    match = _KEY.fullmatch(key)
    if match is None:
        return None
    in_slot, part = match["slot"], match["part"]
    return Key(
        topic=match["topic"].decode(),
        partition=int(match["partition"]),
        slot=None if in_slot is None else int(in_slot),
        part=None if part is None else int(part),
    )
