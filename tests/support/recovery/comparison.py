"""Compares what a run with faults has published with an undisturbed run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from typing import NamedTuple

from tests.support.recovery.subscriber import Received


class Published(NamedTuple):
    """All that a run has published."""

    rankings: list[Received]
    letters: list[Received]

    def against(self, expected: Published) -> tuple[Comparison, Comparison]:
        """Rankings and dead letters against those of an undisturbed run."""
        return (
            compare(expected.rankings, self.rankings, ranking_name),
            compare(expected.letters, self.letters, letter_name),
        )


def by_partition(published: Published) -> dict[int, Published]:
    """Published messages of each partition, in their order."""
    parts: dict[int, Published] = {}
    for message in published.rankings:
        number = int(json.loads(message.value or b"")["partition"])
        parts.setdefault(number, Published([], [])).rankings.append(message)
    for message in published.letters:
        number = int(dict(message.headers)["stream-fs-partition"] or b"")
        parts.setdefault(number, Published([], [])).letters.append(message)
    return parts


@dataclass(frozen=True)
class Comparison:
    """Messages in both, by how much they differ, and messages in only one of them.

    `duplicated` counts all surplus messages, `misplaced` neighbours in the wrong order.
    """

    compared: int
    differing_bytes: int
    lost: int
    duplicated: int
    misplaced: int

    @property
    def same(self) -> bool:
        wrong = (self.differing_bytes, self.lost, self.duplicated, self.misplaced)
        return self.compared > 0 and not any(wrong)

    def __add__(self, other: Comparison) -> Comparison:
        return Comparison(
            self.compared + other.compared,
            self.differing_bytes + other.differing_bytes,
            self.lost + other.lost,
            self.duplicated + other.duplicated,
            self.misplaced + other.misplaced,
        )


def compare(
    expected: Sequence[Received], found: Sequence[Received], name: Callable[[Received], int]
) -> Comparison:
    """`name` gives the number of a message in its stream; numbers rise in the right order."""
    first: dict[int, Received] = {}
    for message in found:
        first.setdefault(name(message), message)
    wanted = {name(message): message for message in expected}
    pairs = [(message, first[key]) for key, message in wanted.items() if key in first]
    times = Counter(name(message) for message in found)
    names = [name(message) for message in found]
    return Comparison(
        compared=len(pairs),
        differing_bytes=sum(differing(one, other) for one, other in pairs),
        lost=len(wanted.keys() - first.keys()),
        duplicated=sum(count - (key in wanted) for key, count in times.items()),
        misplaced=sum(a > b for a, b in pairwise(names)),
    )


def differing(one: Received, other: Received) -> int:
    """Bytes in which two messages differ: key, value and headers; one for a field too many."""
    return sum(_distance(a, b) for a, b in zip_longest(_fields(one), _fields(other)))


def ranking_name(message: Received) -> int:
    """The number of a ranking's chunk."""
    return int(json.loads(message.value or b"")["sequence"])


def letter_name(message: Received) -> int:
    """The offset that a dead letter had as a record."""
    return int(dict(message.headers)["stream-fs-offset"] or b"")


def _fields(message: Received) -> list[bytes | None]:
    headers = [field for name, value in message.headers for field in (name.encode(), value)]
    return [message.key, message.value, *headers]


def _distance(one: bytes | None, other: bytes | None) -> int:
    if one is None or other is None:
        return int(one is not other)
    return sum(a != b for a, b in zip_longest(one, other))
