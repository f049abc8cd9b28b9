import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.quality.methods import chunks
from tests.quality.results import Key, Result, append_results, resume_results
from tests.quality.table import render
from tests.unit.evaluate.planted import planted_views


def result(dataset: str, removal: int, method: str, nmi: float) -> Result:
    return Result(Key(dataset, removal, 0.5, method, "gimc raw", 0.1), nmi, 0.0, 0.0)


@pytest.mark.parametrize(
    ("instances", "clusters", "sizes"),
    [
        (116, 5, [100, 16]),
        (203, 4, [100, 103]),
        (2000, 10, [200] * 10),
        (50, 4, [50]),
    ],
)
def test_chunks_cover_the_stream(instances: int, clusters: int, sizes: list[int]) -> None:
    cut = list(chunks(instances, clusters))
    assert [piece.stop - piece.start for piece in cut] == sizes
    assert cut[0].start == 0
    assert cut[-1].stop == instances
    assert all(before.stop == after.start for before, after in pairwise(cut))


def test_a_stopped_run_continues_after_its_last_complete_line(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    first, second = result("a", 0, "variance", 0.25), result("a", 1, "variance", 0.5)
    assert resume_results(path) == []
    append_results(path, [first, second])
    path.write_bytes(path.read_bytes()[:-5])
    assert resume_results(path) == [first]
    append_results(path, [second])
    assert resume_results(path) == [first, second]


def test_the_table_pairs_differences_by_removal() -> None:
    gains = {("a", 0): 0.1, ("a", 1): 0.3, ("b", 0): 0.0, ("b", 1): 0.0}
    results = []
    for (dataset, removal), gain in gains.items():
        level = 0.2 if dataset == "a" else 0.6
        results.append(result(dataset, removal, "variance", level))
        results.append(result(dataset, removal, "default", level + gain))
    lines = [line.split() for line in render(results, ["default", "variance"]).splitlines()]
    assert ["mean", "0.500", "0.400"] in lines
    # a gains 0.2 ± 0.1 over its removals, b nothing: 0.1, ± 0.1/2 by removals, ± 0.1 by sets
    assert lines[-3:] == [
        ["mean", "+0.100", "+0.000"],
        ["±", "removals", "0.050", "0.000"],
        ["±", "sets", "0.100", "0.000"],
    ]


def test_a_small_run_from_start_to_table(tmp_path: Path) -> None:
    data, labels = planted_views(size=25, missing=0)
    views = {f"view_{v}": x for v, x in enumerate(data.views)}
    np.savez(tmp_path / "planted.npz", allow_pickle=False, labels=labels, **views)
    command = [sys.executable, "-m", "tests.quality", "--data", str(tmp_path), "--jobs", "1"]
    command += ["--removals", "1", "--ratios", "0.3", "--methods", "default", "variance"]
    command += ["--resume", str(tmp_path / "results.jsonl")]
    first = subprocess.run(command, capture_output=True, text=True, check=True)
    header, planted = (line.split() for line in first.stdout.splitlines()[:2])
    nmi = dict(zip(header[1:], map(float, planted[1:]), strict=True))
    assert nmi["default"] > 0.7
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stdout == first.stdout
    assert again.stderr == ""  # nothing was measured twice
