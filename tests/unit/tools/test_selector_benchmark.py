"""The benchmark measures what it says, on shapes that take no time; no time is asserted."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import partial
from math import isfinite
from pathlib import Path

import numpy as np
import pytest

from stream_fs.selector import update
from tests.benchmarks import rivals, selector
from tests.benchmarks.comparisons import Case
from tests.benchmarks.growth import sweeps
from tests.benchmarks.measure import Comparison, Goal, peak_bytes, slope, take_turns
from tests.benchmarks.workload import Shape, presence, stream, warm_model

SMALL = Shape(12, rows=40, clusters=3)
TINY = selector.Plan(
    kernels=[Case(SMALL, 2, Goal("≤", 1.5))],
    reference=[Case(SMALL, 1)],
    recomputing=[(Case(SMALL, 1, Goal("≥", 10)), 3)],
    ranking=[Case(SMALL, 1, Goal("<", 1))],
    growth_base=SMALL,
    growth_scale=0.02,
    growth_length=2,
    growth_turns=1,
    growth_iterations=2,
)
ROWS = [
    "mandatory kernels",
    "kernels, missing rows built",
    "MiniBatchNMF, as many passes",
    "MiniBatchNMF, one partial_fit",
    "reference with explicit imputation",
    "all rows anew at chunk 3",
    "scores and ranking to 200",
    "scores and ranking to d/2",
]
SIZES = [
    "N, rows of a chunk",
    "d, features of a view",
    "K, clusters",
    "views, the same d in all together",
    "views, the same d in each",
    "missing share",
    "density, CSR",
]


def test_the_quick_form_prints_every_row_and_writes_the_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "figures.json"
    monkeypatch.setattr(selector, "QUICK", TINY)
    monkeypatch.setattr(sys, "argv", ["selector", "--quick", "--json", str(file)])
    selector.main()
    first_cells = [line.split("|")[1].strip() for line in table_lines(capsys.readouterr().out)]
    figures = json.loads(file.read_text(encoding="utf-8"))
    assert [c["label"] for c in figures["comparisons"]] == ROWS
    assert [g["name"] for g in figures["growth"]] == SIZES
    for name in (*ROWS, *SIZES):
        assert first_cells.count(name) == 1
    for comparison in figures["comparisons"]:
        assert all(isfinite(r) and r > 0 for r in comparison["ratio"].values())
    for growth in figures["growth"]:
        assert len(growth["points"]) == TINY.growth_length
        assert all(isfinite(p["seconds"]) and p["seconds"] > 0 for p in growth["points"])
        assert all(p["bytes"] > 0 for p in growth["points"])
        assert isfinite(growth["time_slope"])
        assert isfinite(growth["memory_slope"])


def table_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("|")]


def test_the_reference_does_the_same_work_as_the_update() -> None:
    state, chunk = warm_model(SMALL, min_iterations=10, max_iterations=10)
    after, _ = update(state, chunk)
    model = rivals.reference_at(state)
    views = [np.asarray(x, np.float64) for x in rivals.all_rows(chunk)]
    present = [part.present for part in chunk.views.values()]
    result = model.chunk(views, present, np.ones((chunk.size, state.params.sketch)))
    assert result.iterations == 10
    np.testing.assert_allclose(model.alpha, after.alpha, rtol=1e-4)
    for own, view in zip(model.views, after.views.values(), strict=True):
        np.testing.assert_allclose(own.V, view.V, rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize(("views", "missing"), [(2, 0.5), (3, 0.5), (5, 0.8), (1, 0.0)])
def test_every_row_keeps_a_view_and_every_view_its_share(views: int, missing: float) -> None:
    shape = replace(SMALL, views=views, missing=missing)
    masks = presence(shape, np.random.default_rng(0))
    assert np.any(masks, axis=0).all()
    assert {int(mask.sum()) for mask in masks} == {round(shape.rows * (1 - missing))}


def test_two_views_cannot_both_lack_most_rows() -> None:
    with pytest.raises(ValueError, match="cannot each lack 80%"):
        next(stream(replace(SMALL, missing=0.8)))


def test_a_density_is_kept() -> None:
    chunk = next(stream(replace(SMALL, dimension=500, density=0.1)))
    for part in chunk.views.values():
        assert part.rows.size / (part.rows.shape[0] * 500) == pytest.approx(0.1, rel=0.15)


def test_the_full_plan_covers_the_ranges() -> None:
    plan = selector.FULL
    ranges = {
        sweep.name: (min(sweep.values), max(sweep.values))
        for sweep in sweeps(plan.growth_base, plan.growth_scale, plan.growth_length)
    }
    assert list(ranges.values()) == [
        (250, 2000), (500, 20_000), (5, 40), (1, 8), (1, 8), (0.0, 0.8), (0.001, 0.1),
    ]  # fmt: skip


def test_every_run_is_in_every_turn_and_ratios_are_within_turns() -> None:
    order: list[str] = []
    taken = take_turns({name: partial(order.append, name) for name in "abc"}, 4)
    assert "".join(order) == "abcbcacababc"
    assert all(len(seconds) == 4 for seconds in taken.values())
    compared = Comparison("", "", "", "", "", (2.0, 30.0, 4.0), (1.0, 10.0, 1.0))
    assert compared.quartiles == (2.5, 3.0, 3.5)


def test_goals_and_fits() -> None:
    assert Goal("≤", 2).met(2)
    assert not Goal("<", 2).met(2)
    assert Goal("≥", 2).met(2)
    assert slope([1, 2, 4], [3, 12, 48]) == pytest.approx(2)
    assert peak_bytes(lambda: np.ones(1_000_000)) == pytest.approx(8e6, rel=0.01)
