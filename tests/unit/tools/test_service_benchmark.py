"""What the benchmark of the service computes; no time is asserted."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from confluent_kafka import Message

from stream_fs.service.configuration import load
from stream_fs.wire import RecordDecoder
from tests.benchmarks.growth import Growth, Point
from tests.benchmarks.measure import Comparison, Goal, median_interval, take_timed_turns
from tests.benchmarks.peers import environment
from tests.benchmarks.service import __main__ as bench
from tests.benchmarks.service import growing
from tests.benchmarks.service.input_topics import Source, Workspace, configured
from tests.benchmarks.service.plan import FULL, QUICK, TINY, Plan
from tests.benchmarks.service.reading import Decoding, Layout, Unpacking, timed
from tests.benchmarks.service.records import Mix
from tests.benchmarks.service.report import Report
from tests.benchmarks.service.sections import SECTIONS, Figure, Section
from tests.benchmarks.service.sharing import pace


def test_runs_that_time_themselves_take_turns_and_the_first_turn_does_not_count() -> None:
    order: list[str] = []

    def run(name: str) -> float:
        order.append(name)
        return float(len(order))

    taken = take_timed_turns({"a": lambda: run("a"), "b": lambda: run("b")}, 2)
    assert "".join(order) == "baabba"
    assert taken == {"a": (3.0, 6.0), "b": (4.0, 5.0)}
    assert len(take_timed_turns({"a": lambda: 1.0}, 1, warm_up=False)["a"]) == 1


def test_the_interval_of_a_median_is_a_pair_of_order_statistics() -> None:
    # 2 · (1 + 9) / 2⁹ = 3.9 % lie outside of the second and the second last of nine.
    assert median_interval([9, 1, 8, 2, 7, 3, 6, 4, 5]) == (2, 8)
    assert median_interval([1, 2, 3, 4, 5, 6]) == (1, 6)
    assert median_interval([3, 1, 2]) == (1, 3)
    assert median_interval([4]) == (4, 4)
    assert median_interval(range(101)) == (40, 60)


@pytest.mark.parametrize("make", [Layout, Unpacking])
@pytest.mark.parametrize("mix", [Mix(5), Mix(100, views=1), Mix(300, views=4)], ids=str)
def test_the_bare_loops_find_the_rows_that_the_decoder_finds(
    mix: Mix, make: Callable[[Mix], Decoding]
) -> None:
    records = mix.records(120)
    decoding = make(mix)
    messages = [Message(topic="t", partition=0, offset=0, value=value) for value in records]
    batch = RecordDecoder(mix.declared).decode(records)
    expected = np.hstack([batch.views[n].dense() for n in mix.names])
    joined = np.hstack(decoding.joined([decoding.part(message) for message in messages]))
    np.testing.assert_array_equal(joined, expected)
    one_by_one = np.empty_like(expected)
    for row, message in zip(one_by_one, messages, strict=True):
        decoding.copy(message, row)
    np.testing.assert_array_equal(one_by_one, expected)


def test_records_have_the_requested_size() -> None:
    for size in (200, 1_000, 10_000):
        (record, *_) = Mix.of_bytes(size).records(10)
        assert len(record) == pytest.approx(size, rel=0.1)


def test_time_is_counted_from_the_first_arrival() -> None:
    arriving = iter([0, 0, 10, 40, 50])
    assert timed(lambda: next(arriving), 100) > 0
    assert next(arriving, None) is None


def test_the_pace_is_that_while_all_processes_work() -> None:
    selector = [(float(at), at % 2) for at in range(8)]
    assert pace([selector]) == 1.0
    first = [(0.0, 0), (1.0, 1), (2.0, 0), (3.0, 0), (4.0, 0)]
    second = [(2.5, 1), (3.5, 1), (9.0, 1)]
    # From 2.5, when both are there, to 4, when partition 0 is done: at 3, 3.5 and 4.
    assert pace([first, second]) == 0.5
    assert pace([selector, []]) == 1.0


@pytest.mark.parametrize("plan", [FULL, QUICK, TINY], ids=["full", "quick", "tiny"])
def test_every_size_is_a_valid_stream(plan: Plan, tmp_path: Path) -> None:
    for sweep in growing.sweeps(plan.growth_scale, plan.growth_length):
        assert len({size.count for size in sweep.sizes}) == len(sweep.sizes) > 1
        for size in sweep.sizes:
            source = Source("topic", size.mix, 1, size.partitions, 0)
            path = tmp_path / "stream.toml"
            path.write_text(configured("name", source, "host:1", size.settings), encoding="utf-8")
            settings = load(path, {}).stream_settings()
            assert settings.chunk_policy.records == size.chunk
            assert settings.chunk_policy.first == size.records(0)
            assert settings.params.clusters == size.clusters
            # Sizes alone are varied: another number of iterations would be another cost.
            assert settings.params.min_iterations == settings.params.max_iterations


def test_the_sizes_of_a_sweep_take_turns() -> None:
    order: list[int] = []

    def run(place: int) -> Point:
        order.append(place)
        return Point(place, place, len(order), 1, 1)

    found = growing.interleaved([partial(run, 0), partial(run, 1), partial(run, 2)], 2)
    assert order == [0, 1, 2, 1, 2, 0]
    assert [[point.seconds for point in points] for points in found] == [[1, 6], [2, 4], [3, 5]]


def test_the_full_plan_has_the_turns_that_an_interval_needs() -> None:
    assert FULL.turns >= 9
    assert {size for size, _ in FULL.ingest} == {1_000, 10_000}
    assert FULL.features == (1_000, 10_000)
    assert FULL.snapshot_bytes == 20_000_000


def test_a_report_shows_goals_rates_and_growth() -> None:
    def run(_: Workspace, __: Plan) -> Iterator[Figure]:
        yield Comparison("s", "met", "x", "a", "b", (2.0, 2.0), (1.0, 1.0), Goal("≥", 2), 10)
        yield Comparison("s", "missed", "x", "a", "b", (1.0, 1.0), (1.0, 1.0), Goal("≥", 2))
        yield Growth("d", "feature", "held", (Point(1, 1, 1, 5, 8), Point(2, 2, 2, 10, 4)), None)

    section = Section("s", "A section", run, lambda: {"peer": "not here (no wheel)"})
    report = Report(FULL)
    report.add(section, run(None, FULL))  # type: ignore[arg-type]  # it is not looked at
    text = report.markdown()
    assert "- peer: not here (no wheel)\n" in text
    assert re.search(r"^## A section\n\nWithheld by the hypervisor meanwhile: \d+\.\d%", text, re.M)
    assert list(report.goals().values()) == [True, False]
    assert text.endswith("- 1 of 2 goals were met\n- missed: s: missed (x) ≥ 2, found 1\n")
    met, missed = (line for line in text.splitlines() if line.startswith(("| met", "| missed")))
    assert "a 5/s" in met
    assert "b 10/s" in met
    assert met.endswith("| met     |")
    assert "a 1.000 s" in missed
    assert missed.endswith("| not met |")
    figures = json.loads(report.json())
    assert [c["met"] for c in figures["comparisons"]] == [True, False]
    assert figures["comparisons"][0]["ratio"]["interval"] == [2.0, 2.0]
    assert figures["growth"][0]["time_slope"] == pytest.approx(1)
    assert 0 <= figures["withheld"]["s"] <= 1
    assert figures["machine"]["broker"].startswith("Apache Kafka")
    assert "librdkafka" in figures["machine"]["confluent-kafka"]


@pytest.mark.parametrize(("strict", "code"), [([], 0), (["--strict"], 1)])
def test_a_missed_goal_is_an_exit_code_only_with_strict(
    strict: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missed = Comparison("s", "missed", "x", "a", "b", (1.0,), (1.0,), Goal("≥", 2))

    def measure(*_: object) -> Report:
        report = Report(FULL)
        report.add(Section("s", "A section", lambda *_: []), [missed])
        return report

    monkeypatch.setattr(bench, "measure", measure)
    assert bench.main([*strict, "--output", str(tmp_path)]) == code


def test_frameworks_are_listed_with_their_versions_or_the_reason_of_their_absence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(environment, "interpreter", lambda: Path(sys.executable))
    found = environment.versions(["numpy", "no_such_framework"])
    assert found["numpy"] == np.__version__
    assert found["no_such_framework"].startswith("not here, and not compared (ModuleNotFoundError")


def test_sections_are_selected_by_name() -> None:
    assert len({section.name for section in SECTIONS}) == len(SECTIONS)
