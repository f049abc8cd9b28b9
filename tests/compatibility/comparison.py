"""The differences between two pieces of plain data; numbers are equal to a tolerance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np


def differences(before: Any, now: Any, tolerance: float, where: str = "") -> Iterator[str]:
    """Every place where the two differ; the order of fields counts.

    The tolerance is relative to a number, or to the largest of an array; to one where that is less.
    """
    if isinstance(before, np.ndarray) and isinstance(now, np.ndarray):
        yield from _of_arrays(before, now, tolerance, where)
    elif type(before) is not type(now):
        yield f"{where}: {before!r:.100} → {now!r:.100}"
    elif isinstance(before, Mapping):
        if list(before) != list(now):
            yield f"{where}: fields {list(before)} → {list(now)}"
        for name in before:
            if name in now:
                yield from differences(before[name], now[name], tolerance, f"{where}.{name}")
    elif isinstance(before, list | tuple):
        if len(before) != len(now):
            yield f"{where}: {len(before)} → {len(now)} items"
        for number, (one, other) in enumerate(zip(before, now, strict=False)):
            yield from differences(one, other, tolerance, f"{where}[{number}]")
    elif isinstance(before, float):
        if not abs(before - now) <= tolerance * max(1.0, abs(before)):
            yield f"{where}: {before!r} → {now!r}"
    elif isinstance(before, bytes) and before != now:
        yield f"{where}: {_of_bytes(before, now)}"
    elif before != now:
        yield f"{where}: {before!r:.200} → {now!r:.200}"


def _of_arrays(before: Any, now: Any, tolerance: float, where: str) -> Iterator[str]:
    if (before.shape, before.dtype) != (now.shape, now.dtype):
        yield f"{where}: {before.dtype}{before.shape} → {now.dtype}{now.shape}"
        return
    if before.dtype.kind != "f":
        if not np.array_equal(before, now):
            yield f"{where}: {before!r:.100} → {now!r:.100}"
        return
    scale = max(1.0, float(np.abs(before).max(initial=0)))
    off = float(np.abs(before - now).max(initial=0))
    if not off <= tolerance * scale:
        yield f"{where}: differs by {off:g} of {scale:g}"


def _of_bytes(before: bytes, now: bytes) -> str:
    """Where they begin to differ, and how."""
    ends = (n for n, (one, other) in enumerate(zip(before, now, strict=False)) if one != other)
    first = next(ends, min(len(before), len(now)))
    start = max(0, first - 20)
    there, here = before[start : first + 40], now[start : first + 40]
    return f"byte {first} of {len(before)} → {len(now)}: …{there!r} → …{here!r}"
