"""Whether MessagePack that could reserve much memory is nested as a record is.

A list reserves what it announces, and so does each of the lists in it: a few bytes for every level
of a thousand. The lists of a record have no lists in them, so a record that is nested as it should
be reserves no more than its views need.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Any, Final

import msgpack

MAPS: Final = 3
"""Maps in maps: the record, its views, a sparse pair."""
FREE_BYTES: Final = 1 << 20
"""So much may be reserved without a closer look."""

_POINTER_BYTES: Final = 8
_NOTHING: Final[dict[str, Any]] = {"max_array_len": 0, "max_map_len": 0}


def may_reserve_much(value: bytes, longest: int) -> bool:
    """Whether lists of at most so many entries could add up; short ones cannot."""
    lists = value.count(b"\xdc") + value.count(b"\xdd")
    return lists * min(longest, len(value)) * _POINTER_BYTES > FREE_BYTES


def check_nesting(value: bytes) -> None:
    """Go through a value without keeping anything; a ValueError where it is nested too deeply."""
    unpacker = msgpack.Unpacker(
        max_buffer_size=max(len(value), 1), unicode_errors="surrogateescape", **_NOTHING
    )
    unpacker.feed(value)
    _go_through(unpacker, value, MAPS)


def _go_through(unpacker: Any, value: bytes, maps: int) -> None:
    code = value[unpacker.tell()] if unpacker.tell() < len(value) else 0xC1
    if 0x80 <= code <= 0x8F or code in (0xDE, 0xDF):
        if not maps:
            raise ValueError("nested too deeply")
        for _ in range(unpacker.read_map_header()):
            unpacker.unpack()
            _go_through(unpacker, value, maps - 1)
    elif 0x90 <= code <= 0x9F or code in (0xDC, 0xDD):
        # The unpacker takes no list or map that has anything in it.
        deque(islice(unpacker, unpacker.read_array_header()), maxlen=0)
    else:
        unpacker.unpack()
