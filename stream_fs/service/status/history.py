"""Earlier values of a ranking: the newest all of them, older ones ever fewer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

MOST_POINTS: Final = 240
"""However many rankings there were."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Point:
    """One ranking: for each view its weight, the share that lacked it, and the overlap."""

    sequence: int
    time: int
    weight: tuple[float, ...]
    missing: tuple[float | None, ...]
    overlap: tuple[float | None, ...]


def appended(points: tuple[T, ...], point: T) -> tuple[T, ...]:
    """With one more; where there would be too many, every second of the older half goes.

    So the whole life stays in view, and the newer half of it in full.
    """
    if len(points) >= MOST_POINTS:
        half = MOST_POINTS // 2
        points = (*points[:half:2], *points[half:])
    return (*points, point)


def spread(points: Sequence[T], most: int) -> Sequence[T]:
    """At most so many of them, evenly chosen, the first and the last among them."""
    if len(points) <= most:
        return points
    step = (len(points) - 1) / (most - 1)
    return [points[round(index * step)] for index in range(most)]
