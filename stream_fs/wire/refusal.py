"""How the parts of a decoder say that a record cannot be used."""

from __future__ import annotations

from stream_fs.records import Reason

_LONGEST = 300
_QUOTED = 60


class Refused(Exception):
    """A record cannot be used; never leaves the decoder, which makes a `BadRecord` of it."""

    def __init__(self, reason: Reason, detail: str) -> None:
        """The detail may quote the record, so it is cut and made printable."""
        self.reason: Reason = reason
        self.detail = printable(detail)
        super().__init__(self.detail)


def printable(text: str) -> str:
    """One line of valid text, not too long."""
    whole = text[: _LONGEST + 1].encode("utf-8", "backslashreplace").decode()
    line = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in whole)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def quoted(name: str | bytes, most: int = _QUOTED) -> str:
    """A name in quotation marks, cut to so many characters, so that what follows is still seen."""
    shown = repr(name[: most + 1])
    return shown if len(shown) <= most + 2 else f"{shown[:most]}…{shown[-1]}"
