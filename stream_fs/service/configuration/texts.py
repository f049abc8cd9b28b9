"""Text files that a configuration consists of."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 64 << 20
"""Of a file: the names of a few million features, and no device without an end."""

_BLOCK_BYTES: Final = 1 << 16
_BLOCKS: Final = MOST_BYTES // _BLOCK_BYTES


def text_of(path: Path) -> str:
    """The text of a file; a ValueError says why it cannot be read."""
    try:
        with path.open("rb") as file:
            data = b"".join(islice(iter(lambda: file.read(_BLOCK_BYTES), b""), _BLOCKS + 1))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise ValueError(f"{path} has more than {MOST_BYTES} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text") from None
    # As text files are read everywhere: all ends of lines are one character.
    return text.replace("\r\n", "\n").replace("\r", "\n")
