"""Runs on a user's data, which some of the methods cannot process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stream_fs.cli.main import main
from stream_fs.evaluate.datasets import DataSet, IncompleteViews
from stream_fs.evaluate.errors import UnsupportedData
from stream_fs.evaluate.experiments import load_experiment
from stream_fs.evaluate.experiments.ablation import UNCHANGED, VARIANTS
from stream_fs.evaluate.methods.registry import (
    METHODS,
    advised_transform,
    feed_chunks,
    new_selector,
)
from stream_fs.evaluate.plan import DEVELOPMENT, DataSetCatalog, DataSetExperiment, Options
from stream_fs.evaluate.protocol import Trial, chunks, make_trial
from stream_fs.service.exit_codes import ExitCode
from tests.support.planted_views import planted_views

Capture = pytest.CaptureFixture[str]
NEEDS_POSITIVE = {"paper", "classical", "OMVFS", "MiniBatchNMF"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory with one data set that has negative values, as preset `default` allows."""
    directory = tmp_path / "data"
    directory.mkdir()
    planted, labels = planted_views(size=25, missing=0)
    views = {f"view_{v}": x for v, x in enumerate(planted.views)}
    views["view_0"][:, 0] -= 1
    np.savez(directory / "plant.npz", allow_pickle=False, labels=labels, **views)
    return directory


def run(data: Path, output: Path, *experiments: str) -> str:
    """The report in Markdown."""
    arguments = ["evaluate", "--data", str(data), "--output", str(output), "--sets", "plant"]
    arguments += ["--experiments", *experiments, "--repetitions", "2", "--shares", "0.3"]
    assert main(arguments) == ExitCode.OK
    assert (output / "report.html").is_file()
    return (output / "report.md").read_text(encoding="utf-8")


def test_a_method_that_cannot_process_a_data_set_does_not_end_the_run(
    data: Path, tmp_path: Path
) -> None:
    text = run(data, tmp_path / "o", "ranking")
    skipped = text[text.index("### Methods that could not be run") :].split("###")[1]
    for method in NEEDS_POSITIVE:
        line = next(line for line in skipped.splitlines() if line.startswith(f"| plant | {method}"))
        assert "ranking" in line
        assert "negative" in line
    for method in set(METHODS) - NEEDS_POSITIVE:
        assert f"| plant | {method}" not in skipped
    measured = (tmp_path / "o" / "ranking.csv").read_text()
    assert {method for method in METHODS if f",{method}," in measured} == (
        set(METHODS) - NEEDS_POSITIVE
    )
    by_set = text[text.index("### NMI, user's own data, by data set") :].split("###")[1]
    lines = {line.split("|")[1].strip(): line for line in by_set.splitlines() if "|" in line}
    assert "–" in lines["paper √"]
    assert "–" not in lines["default √"]
    assert "–" not in lines["variance √"]


def test_integers_and_booleans_are_compared_like_floats(data: Path, tmp_path: Path) -> None:
    planted, labels = planted_views(size=25, missing=0)
    counts, truths = np.rint(10 * np.abs(planted.views[0])).astype(np.uint8), planted.views[1] > 0
    np.savez(data / "plant.npz", allow_pickle=False, view_0=counts, view_1=truths, labels=labels)
    run(data, tmp_path / "o", "ranking")
    measured = (tmp_path / "o" / "ranking.csv").read_text()
    assert all(f",{method}," in measured for method in METHODS)


def test_the_other_experiments_continue_as_well(data: Path, tmp_path: Path) -> None:
    names = ["speed", "convergence", "missing", "stability"]
    text = run(data, tmp_path / "o", *names)
    for name in names:
        assert (tmp_path / "o" / f"{name}.csv").is_file()
    for title in ("Incremental speed-up of preset default", "Convergence", "Stability"):
        assert title in text
    skipped = text[text.index("### Methods that could not be run") :].split("###")[1]
    line = next(line for line in skipped.splitlines() if line.startswith("| plant | paper |"))
    for name in names:
        assert name in line
    (words,) = (line for line in text.splitlines() if "Could not be run on plant" in line)
    assert "paper, again" in words.rstrip(".").split(": ")[1].split("; ")
    measured = (tmp_path / "o" / "rows.jsonl").read_bytes()
    assert run(data, tmp_path / "o", *names) == text
    assert (tmp_path / "o" / "rows.jsonl").read_bytes() == measured


def test_an_error_that_ends_a_run_names_data_set_and_method(
    data: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("stream_fs.evaluate.methods.baselines.variance", broken)
    arguments = ["evaluate", "--data", str(data), "--output", str(tmp_path / "o")]
    code = main([*arguments, "--sets", "plant", "--experiments", "ranking", "--shares", "0.3"])
    assert code == ExitCode.PROBLEM
    errors = capsys.readouterr().err
    assert "ZeroDivisionError: planted" in errors
    assert "experiment ranking, data set plant, variance" in errors


def test_a_published_mask_that_is_missing_names_the_data_set(
    data: Path, tmp_path: Path, capsys: Capture
) -> None:
    np.savez(data / "plant_wen_folds.npz", allow_pickle=False, **{"del_0.9": np.ones((1, 100, 3))})
    arguments = ["evaluate", "--data", str(data), "--output", str(tmp_path / "o")]
    code = main([*arguments, "--masks", "published", "--experiments", "convergence"])
    assert code == ExitCode.CONFIGURATION
    assert "experiment convergence, data set plant" in capsys.readouterr().err


@pytest.mark.parametrize("method", ["OMVFS", "MiniBatchNMF"])
def test_methods_for_positive_values_raise_for_others(method: str) -> None:
    planted, labels = planted_views(size=25, missing=0)
    planted.views[1][:, 2] -= 1
    trial, _ = make_trial(DataSet("plant", planted.views, labels), 0, 0.5)
    with pytest.raises(UnsupportedData, match="negative"):
        METHODS[method].rank(trial)


def test_counts_with_a_negative_value_are_not_declared_as_counts() -> None:
    counts = np.zeros((50, 8))
    counts[:, 0] = 1
    both = IncompleteViews((counts, counts.copy()), np.ones((50, 2), bool))
    both.views[1][3, 1] = -0.5
    assert advised_transform(both, 0) == "unit"
    assert advised_transform(both, 1) == "minmax"
    METHODS["default"].rank(Trial(both, 2, 0))


def test_an_unknown_set_is_the_users_own(data: Path, tmp_path: Path) -> None:
    known = DEVELOPMENT[0]
    (data / f"{known}.npz").write_bytes((data / "plant.npz").read_bytes())
    catalog = DataSetCatalog(data)
    assert catalog.entry("plant").role == "user's own"
    assert catalog.entry(known).role == "development"
    assert catalog.entry("topics").role == "held-out"
    text = run(data, tmp_path / "o", "convergence")
    row = next(line for line in text.splitlines() if line.startswith("| plant | user's own |"))
    assert row.rstrip(" |").endswith("–")
    assert "| plant | development" not in text


def test_the_grid_is_planned_on_the_users_own_sets(data: Path) -> None:
    grid = load_experiment("grid")
    assert isinstance(grid, DataSetExperiment)
    catalog = DataSetCatalog(data)
    assert grid.plan(Options(), catalog.entry("plant"))
    assert not grid.plan(Options(), catalog.entry("topics"))


def test_every_variant_of_the_ablation_changes_something() -> None:
    """A variant whose parameter has no effect on the stream measures nothing."""
    planted, labels = planted_views(size=100, missing=0)
    generator = np.random.default_rng(0)
    counts = generator.poisson(np.where(labels[:, None] == np.arange(24) % 4, 0.5, 0.05))
    views = (*planted.views[:2], counts.astype(float))
    trial, _ = make_trial(DataSet("plant", views, labels), 0, 0.5)

    def outcome(variant: str) -> tuple[object, ...]:
        changed = dict(VARIANTS[variant])
        selector = new_selector(trial, "default", changed.pop("transform", None), **changed)
        feed_chunks(selector, trial, chunks(trial.instances, trial.clusters))
        scores = tuple(of_view.tobytes() for of_view in selector.scores().values())
        orders = tuple(order.tobytes() for order in selector.get_order().values())
        return (selector.params.budget, scores, orders)

    unchanged = outcome(UNCHANGED)
    same = [name for name in VARIANTS if name != UNCHANGED and outcome(name) == unchanged]
    assert same == []
