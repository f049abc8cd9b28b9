"""Where one record of a file ends and the next begins; what is in it is for the decoder to say.

Both readers hold a block and a record in memory, however long the file is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final

import msgpack

from stream_fs.errors import BrokenFile

MOST_BYTES: Final = 64 << 20
"""Of a record; what is larger is no record but a file of another kind."""
BLOCK_BYTES: Final = 1 << 20

_MAPS: Final = frozenset([*range(0x80, 0x90), 0xDE, 0xDF])
"""First bytes of a map in MessagePack."""


def json_lines(file: BinaryIO, name: str) -> Iterator[tuple[bytes, int]]:
    """The lines without their ends, and the position behind each; empty lines are no records.

    Raises `BrokenFile` where there is no end of line for far too long.
    """
    position = 0
    while line := file.readline(MOST_BYTES + 1):
        if len(line) > MOST_BYTES:
            raise BrokenFile(
                f"{name}: the line that begins at byte {position} has more than {MOST_BYTES} "
                "bytes: is this a file of JSON lines, one record in each?"
            )
        position += len(line)
        value = line.removesuffix(b"\n").removesuffix(b"\r")
        if value.strip():
            yield value, position


def message_pack(file: BinaryIO, name: str) -> Iterator[tuple[bytes, int]]:
    """The objects that follow each other, and the position behind each.

    Raises `BrokenFile` with the position where bytes are no MessagePack: what follows them cannot
    be found, as nothing marks the beginning of a record.
    """
    unpacker = msgpack.Unpacker(max_buffer_size=MOST_BYTES + BLOCK_BYTES)
    left, start = b"", 0
    while block := file.read(_wanted(len(left))):
        if start == 0 and not left and block[0] not in _MAPS:
            raise BrokenFile(f"{name} is not a file of records in MessagePack: it begins otherwise")
        if len(left) > MOST_BYTES:
            raise BrokenFile(
                f"{name}: the record that begins at byte {start} has more than {MOST_BYTES} bytes"
            )
        unpacker.feed(block)
        left += block
        begin = start
        for end in _ends(unpacker, name, start):
            yield left[start - begin : end - begin], end
            start = end
        left = left[start - begin :]
    if left:
        raise BrokenFile(
            f"{name} ends within the record that begins at byte {start}: it is not whole, or "
            "still being written"
        )


def _wanted(left: int) -> int:
    """Bytes to read next; as many as are there, so that a long record is gone through few times."""
    return min(max(BLOCK_BYTES, left), MOST_BYTES + BLOCK_BYTES - left) or BLOCK_BYTES


def _ends(unpacker: msgpack.Unpacker, name: str, start: int) -> Iterator[int]:
    """The positions behind the objects that are whole."""
    while True:
        try:
            unpacker.skip()
        except msgpack.OutOfData:
            return
        except (msgpack.UnpackException, ValueError) as error:
            raise BrokenFile(
                f"{name}: what begins at byte {start} is not MessagePack "
                f"({type(error).__name__}), and the records behind it cannot be found: cut the "
                "file there, or write it anew"
            ) from error
        start = int(unpacker.tell())
        yield start
