"""Messages as plain data, shared by adapters, codecs and the pipeline."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, overload

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
"""In their order; a name may occur more than once."""

Reason = Literal[
    "tombstone",
    "too_large",
    "malformed",
    "version",
    "unknown_view",
    "dimension",
    "bad_sparse",
    "all_missing",
    "not_finite",
    "negative",
    "out_of_range",
]
"""Why a record is bad. Short and stable, because dead letters and metrics carry it.

tombstone      no value
too_large      more bytes than limits.record_bytes
malformed      not in the declared format, or not a record
version        a record of another version
unknown_view   an undeclared view
dimension      a view with more or fewer values than declared
bad_sparse     a sparse pair with invalid indices or values
all_missing    no view is present
not_finite     NaN, infinity, or a value beyond the declared precision
negative       a negative value that the transform or a sparse pair does not allow
out_of_range   a value too large for transform `none`
"""


class Message(NamedTuple):
    """One message as received; `timestamp` in milliseconds since 1970.

    A tuple, which is created faster than a dataclass: there are many.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Messages(Sequence[Message]):
    """Messages of one partition, in the form of the adapter that received them.

    Of nearly all only three columns are needed, so a `Message` is created on demand.
    """

    @abstractmethod
    def values(self) -> Sequence[bytes | None]:
        """The value of every message."""

    @abstractmethod
    def offsets(self) -> Sequence[int]:
        """The offset of every message."""

    @abstractmethod
    def timestamps(self) -> Sequence[int]:
        """The timestamp of every message."""

    @abstractmethod
    def _at(self, position: int) -> Message:
        """The message at a position, from 0 or from the end."""

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...

    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return [self._at(position) for position in range(*index.indices(len(self)))]
        return self._at(index)


@dataclass(frozen=True, slots=True)
class Payload:
    """A message to publish; the sender determines the topic."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A bad record: its position in the batch, the reason and the detail."""

    position: int
    reason: Reason
    detail: str


_MAX_CHARACTERS = 300
_MAX_QUOTED = 60


def printable(text: str) -> str:
    """One line of valid text, of at most 300 characters."""
    valid = text[: _MAX_CHARACTERS + 1].encode("utf-8", "backslashreplace").decode()
    line = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in valid)
    return line if len(line) <= _MAX_CHARACTERS else f"{line[: _MAX_CHARACTERS - 1]}…"


def quoted(name: str | bytes, limit: int = _MAX_QUOTED) -> str:
    """A name in quotation marks, cut to `limit` characters so that the text after it has room."""
    text = repr(name[: limit + 1])
    return text if len(text) <= limit + 2 else f"{text[:limit]}…{text[-1]}"
