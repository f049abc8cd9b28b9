"""The parts of `compare`: each yields what it compared, and what differed."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple

from tests.compatibility.comparison import differences

_SHOWN = 5


class Finding(NamedTuple):
    """A comparison: how many runs and bytes were the same, and the first differences."""

    section: str
    case: str
    runs: int
    bytes: int
    wrong: list[str]


def finding(section: str, case: str, pairs: Iterable[tuple[str, Any, Any]]) -> Finding:
    """Compare what came of several runs: each has a name, and the two sides as plain data."""
    runs = size = 0
    wrong: list[str] = []
    for name, before, now in pairs:
        runs += 1
        size += weight(before)
        wrong += islice(differences(before, now, 0.0, name), _SHOWN)
    return Finding(section, case, runs, size, wrong)


def weight(plain: Any) -> int:
    """The bytes in plain data."""
    match plain:
        case bytes():
            return len(plain)
        case dict():
            return sum(map(weight, plain.values()))
        case list() | tuple():
            return sum(map(weight, plain))
    return 0
