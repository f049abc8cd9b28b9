"""Every section of the benchmark, on streams too small for meaningful figures."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path

import pytest

from stream_fs.broker import BOOTSTRAP_VARIABLE, Broker
from tests.benchmarks.service import __main__ as bench
from tests.benchmarks.service.floors import TIMES
from tests.benchmarks.service.plan import TINY
from tests.benchmarks.service.sections import SECTIONS, Section

FIGURES = {
    "reading": 5,
    "whole": 2,
    "publishing": 1,
    "restoring": 1,
    "sharing": 1,
    "starting": 3,
    "growing": 2,
}

OWN = [section for section in SECTIONS if section.name != "peers"]
"""The peers have an environment of their own, and `test_peers` for what needs none."""


@pytest.mark.parametrize("section", OWN, ids=lambda section: section.name)
def test_a_section_has_its_figures(
    section: Section,
    broker: Broker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(BOOTSTRAP_VARIABLE, broker.bootstrap)
    monkeypatch.setattr(bench, "QUICK", TINY)
    assert bench.main(["--quick", "--sections", section.name, "--output", str(tmp_path)]) == 0
    assert capsys.readouterr().out == (tmp_path / "service.md").read_text(encoding="utf-8")
    found = json.loads((tmp_path / "service.json").read_text(encoding="utf-8"))
    assert len(found["comparisons"]) + len(found["growth"]) == FIGURES[section.name]
    turns = TINY.turns * (TIMES if section.name == "whole" else 1)
    for comparison in found["comparisons"]:
        assert len(comparison["over"]) == len(comparison["under"]) == turns
        assert isfinite(comparison["ratio"]["median"])
        assert comparison["ratio"]["median"] > 0
    for growth in found["growth"]:
        assert all(point["seconds"] > 0 and point["rate"] > 0 for point in growth["points"])
        assert all(point["bytes"] > 1 for point in growth["points"])
