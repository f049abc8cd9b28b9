"""The end of a log file."""

from __future__ import annotations

from pathlib import Path


def read(path: Path) -> str:
    """The whole file, readable even when it is not clean UTF-8; empty when there is none."""
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def last_lines(text: str, lines: int) -> str:
    """The last lines of a text."""
    return "\n".join(text.splitlines()[-lines:])


def tail(path: Path, lines: int = 40) -> str:
    """The last lines of a file."""
    return last_lines(read(path), lines)
