"""Keys of the state topic, which name the content of a record and the owner of the state.

    stream/group/topic/partition/progress
    stream/group/topic/partition/slot/manifest
    stream/group/topic/partition/slot/part
    stream/group/merge/progress

The owner comes first, so that several streams can share a state topic. Topic and partition are
those of the input. Snapshots alternate between the two slots, so that the previous one stays
complete in the compacted topic until the next one is. The progress of the merge, one per stream, is
in the first partition of its first topic; its key has one component less than any other, so that no
topic name can make them equal.

Releases up to 0.1 wrote the same keys without stream and group. Such a state is called legacy; the
stream that wrote it migrates it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import quote, unquote

SLOTS: Final = 2
LEGACY_MERGE_KEY: Final = b"merge/progress"

_OWNER: Final = rb"(?P<stream>[A-Za-z0-9._-]{1,249})/(?P<group>[A-Za-z0-9._~%-]{1,2400})/"
_KEY: Final = re.compile(
    rb"(?:" + _OWNER + rb")?(?P<topic>[A-Za-z0-9._-]{1,249})/(?P<partition>0|[1-9][0-9]{0,9})/"
    rb"(?:progress|(?P<slot>[01])/(?:manifest|(?P<part>0|[1-9][0-9]{0,9})))"
)


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a state: a stream and its consumer group."""

    stream: str
    group: str

    def __str__(self) -> str:
        return f"stream {self.stream!r} in group {self.group!r}"

    @property
    def prefix(self) -> str:
        """First components of every key; the group may contain any character."""
        return f"{self.stream}/{quote(self.group, safe='')}/"

    @property
    def merge_key(self) -> bytes:
        """Key of the merge's progress record."""
        return f"{self.prefix}merge/progress".encode()


@dataclass(frozen=True, slots=True)
class StateKeys:
    """Keys of the state of one partition; without an owner, those of a legacy state."""

    owner: Owner | None
    topic: str
    partition: int

    @property
    def progress(self) -> bytes:
        """Key of the progress record."""
        return self._key("progress")

    def manifest(self, slot: int) -> bytes:
        """Key of the manifest of a snapshot."""
        return self._key(f"{slot}/manifest")

    def part(self, slot: int, part: int) -> bytes:
        """Key of one part of a snapshot; parts count from 0."""
        return self._key(f"{slot}/{part}")

    def _key(self, rest: str) -> bytes:
        prefix = "" if self.owner is None else self.owner.prefix
        return f"{prefix}{self.topic}/{self.partition}/{rest}".encode()


@dataclass(frozen=True, slots=True)
class Key:
    """A parsed key; that of a progress record has no slot, that of a manifest no part."""

    keys: StateKeys
    slot: int | None = None
    part: int | None = None

    @property
    def content(self) -> Literal["progress", "manifest", "part"]:
        """The content of the record with this key."""
        if self.slot is None:
            return "progress"
        return "manifest" if self.part is None else "part"


def slot(snapshot: int) -> int:
    """The slot of a snapshot, by its number."""
    return snapshot % SLOTS


def parse_key(key: bytes) -> Key | None:
    """The parsed key; None for a key that `StateKeys` does not produce."""
    match = _KEY.fullmatch(key)
    if match is None:
        return None
    stream, group, in_slot, part = match["stream"], match["group"], match["slot"], match["part"]
    owner = None
    if stream is not None:
        try:
            owner = Owner(stream.decode(), unquote(group.decode(), errors="strict"))
        except UnicodeDecodeError:
            return None
    parsed = Key(
        keys=StateKeys(owner, match["topic"].decode(), int(match["partition"])),
        slot=None if in_slot is None else int(in_slot),
        part=None if part is None else int(part),
    )
    return parsed if owner is None or key.startswith(owner.prefix.encode()) else None
