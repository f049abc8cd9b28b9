"""The table of means, and how sure the differences are."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tests.quality.results import Result

REFERENCE = "variance"


def render(results: Sequence[Result], methods: Sequence[str]) -> str:
    """NMI of every method, means over shares, judges and removals; differences from variance.

    Every data set weighs the same. ± is one standard error of the mean paired difference:
    ``removals`` says how far other removals of the same sets might move it, ``sets`` how far
    other sets might.
    """
    sets = sorted({r.key.dataset for r in results})
    judges = sorted({r.key.judge for r in results})
    removals = sorted({r.key.removal for r in results})
    table = _table(results, sets, removals, methods)
    lines = [_row("NMI", methods)]
    lines += [_row(name, _numbers(row)) for name, row in zip(sets, table.mean(axis=1), strict=True)]
    lines.append(_row("mean", _numbers(table.mean(axis=(0, 1)))))
    for judge in judges:
        part = _table([r for r in results if r.key.judge == judge], sets, removals, methods)
        lines.append(_row(f"  {judge}", _numbers(part.mean(axis=(0, 1)))))
    for share in sorted({r.key.share for r in results if r.key.share < 1}):
        part = _table([r for r in results if r.key.share in (share, 1.0)], sets, removals, methods)
        lines.append(_row(f"  {share:.0%} of features", _numbers(part.mean(axis=(0, 1)))))
    if REFERENCE in methods:
        lines += _differences(table, sets, methods)
    return "\n".join(lines)


def _differences(
    table: NDArray[np.float64], sets: Sequence[str], methods: Sequence[str]
) -> list[str]:
    paired = table - table[:, :, [methods.index(REFERENCE)]]
    per_set = paired.mean(axis=1)
    error = _standard_error(paired.swapaxes(0, 1))
    lines = ["", _row(f"minus {REFERENCE}", methods)]
    for name, row, errors in zip(sets, per_set, error, strict=True):
        lines.append(_row(name, _numbers(row, "+.3f")))
        lines.append(_row("  ± removals", _numbers(errors)))
    lines.append(_row("mean", _numbers(per_set.mean(axis=0), "+.3f")))
    lines.append(_row("  ± removals", _numbers(np.sqrt((error**2).sum(axis=0)) / len(sets))))
    lines.append(_row("  ± sets", _numbers(_standard_error(per_set))))
    return lines


def _table(
    results: Iterable[Result], sets: Sequence[str], removals: Sequence[int], methods: Sequence[str]
) -> NDArray[np.float64]:
    """Mean NMI (sets × removals × methods) over judges and shares; NaN where nothing is known."""
    cells: dict[tuple[str, int, str], list[float]] = {}
    for r in results:
        cells.setdefault((r.key.dataset, r.key.removal, r.key.method), []).append(r.nmi)

    def mean(*cell: *tuple[str, int, str]) -> float:
        return float(np.mean(cells[cell])) if cell in cells else float("nan")

    return np.array([[[mean(s, i, m) for m in methods] for i in removals] for s in sets])


def _standard_error(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the mean over the first axis; NaN for a single value."""
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(len(values)))


def _numbers(values: Iterable[float], spec: str = ".3f") -> list[str]:
    return [format(value, spec) for value in values]


def _row(head: str, cells: Iterable[str]) -> str:
    return f"{head:<18}" + "".join(f"{cell:>13}" for cell in cells)
