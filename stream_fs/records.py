"""Messages as plain data: what adapters hand in and out, and what codecs say about them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, overload

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
"""In order; a name may occur more than once."""

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
"""Why a record cannot be used. Short and stable: dead letters and metrics carry it.

tombstone      there is no value
too_large      more bytes than the limit
malformed      not the declared format, or not a record
version        a record, but of another version of the format
unknown_view   a view that is not declared
dimension      a view with more or fewer values than declared
bad_sparse     a sparse pair whose indices or values do not fit
all_missing    no view is there
not_finite     NaN or infinity, or beyond the declared precision
negative       a negative value where the view does not allow one
out_of_range   too large a value for transform `none`
"""


class Message(NamedTuple):
    """One message as it was read; `timestamp` in milliseconds since 1970.

    A tuple, because there are many, and it is made faster than a dataclass.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Messages(Sequence[Message]):
    """Messages of one partition that an adapter keeps in its own form.

    There are many of them, and of nearly all only three columns are wanted: the others are made
    when they are asked for.
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
        """The message at a position, from 0 on or from the end."""

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
    """One message to be written; its topic is for the sender to know."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that cannot be used: its position in the batch, why, and the particulars."""

    position: int
    reason: Reason
    detail: str


_LONGEST = 300
_QUOTED = 60


def printable(text: str) -> str:
    """One line of valid text, not too long."""
    whole = text[: _LONGEST + 1].encode("utf-8", "backslashreplace").decode()
    line = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in whole)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def quoted(name: str | bytes, most: int = _QUOTED) -> str:
    """A name in quotation marks, cut to so many characters, so that what follows is still seen."""
    shown = repr(name[: most + 1])
    return shown if len(shown) <= most + 2 else f"{shown[:most]}…{shown[-1]}"
