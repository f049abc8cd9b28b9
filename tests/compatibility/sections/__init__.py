"""The sections of `compare`: each yields what it has compared, and the differences."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple

from tests.compatibility.comparison import differences

_SHOWN = 5


class Options(NamedTuple):
    """The seed of the streams, and a part of the names of cases."""

    seed: int = 0
    cases: str = ""


class Finding(NamedTuple):
    """A comparison: how many runs and bytes were the same, and the first differences."""

    section: str
    case: str
    runs: int
    bytes: int
    wrong: list[str]


def finding(section: str, case: str, pairs: Iterable[tuple[str, Any, Any]]) -> Finding:
    """Compare several runs: each has a name, and the results of both sides as plain data."""
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
