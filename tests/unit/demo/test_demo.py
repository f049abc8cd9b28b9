from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from stream_fs.demo.dataset import CHUNK, MISSING, DemoStream, digits, prepare
from stream_fs.demo.display import DemoDisplay, LineReader, TimedRanking, follow_rankings, speed
from stream_fs.demo.subprocesses import CommandRunner, without_configuration
from stream_fs.demo.summary import ChosenFeatures, describe, everything, quality, summary
from stream_fs.service.configuration import load
from stream_fs.wire import RankingMessage, encode_ranking
from stream_fs.wire.rankings.message import Feature, Fit, RankedView, RecordCounts, SelectionChange

ADDRESS = "localhost:1"


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> DemoStream:
    return prepare(tmp_path_factory.mktemp("demo"), "digits", ADDRESS, 9108)


def ranking(stream: DemoStream, sequence: int, best: str = "first") -> RankingMessage:
    """A ranking by index, or by index backwards, which puts the useless ones first."""
    views = tuple(
        RankedView(
            view.name,
            1 / len(stream.views),
            tuple(
                Feature(index, 0.5)
                for index in (
                    range(len(view.names)) if best == "first" else reversed(range(len(view.names)))
                )
            ),
        )
        for view in stream.views
    )
    total = sequence * CHUNK
    return RankingMessage(
        stream="digits",
        topic="digits",
        partition=0,
        preset="default",
        score="relevance",
        model="0123456789abcdef",
        sequence=sequence,
        offsets=(total - CHUNK, total),
        as_of=0,
        records=RecordCounts(CHUNK, total, 0, {view.name: 0 for view in stream.views}),
        views=views,
        selection={view.name: SelectionChange((), (), 0.75) for view in stream.views},
        fit=Fit(10, True, 1.0, 0.1),
    )


def test_every_view_has_names_and_a_block_of_useless_features() -> None:
    views, labels = digits(np.random.default_rng(0))
    assert len(views) == 4
    for view in views:
        assert view.values.shape == (len(labels), len(view.names))
        assert np.isfinite(view.values).all()
        assert len(set(view.names)) == len(view.names)
        useless = [name for name, bad in zip(view.names, view.useless, strict=True) if bad]
        assert all(name.startswith("useless") for name in useless)
        assert 0.1 < len(useless) / len(view.names) < 0.3
    assert views[0].shape is not None
    assert np.prod(views[0].shape) == len(views[0].names)


def test_the_files_are_what_the_service_takes(stream: DemoStream) -> None:
    configuration = load(stream.config, {}, [])
    assert [view.name for view in configuration.views] == [view.name for view in stream.views]
    assert configuration.chunk.records == CHUNK
    assert configuration.kafka.bootstrap == ADDRESS
    with np.load(stream.data) as arrays:
        for view in stream.views:
            rows = arrays[view.name]
            assert rows.shape == (stream.records, len(view.names))
            missing = np.isnan(rows).all(axis=1)
            assert missing.mean() == pytest.approx(MISSING, abs=1e-3)
            assert np.isfinite(rows[~missing]).all()


def test_settings_of_the_user_do_not_reach_the_commands(
    stream: DemoStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAM_FS_CORE", "numpy")
    monkeypatch.setenv("STREAM_FS_KAFKA__BOOTSTRAP", "prod:9092")
    monkeypatch.setenv("STREAM_FS_KAFKA__PROPERTIES__SASL_PASSWORD", "secret")
    environ = without_configuration(os.environ)
    assert os.environ.items() - environ.items() == {
        ("STREAM_FS_KAFKA__BOOTSTRAP", "prod:9092"),
        ("STREAM_FS_KAFKA__PROPERTIES__SASL_PASSWORD", "secret"),
    }
    commands = CommandRunner(Console(file=io.StringIO()), stream.config.parent, environ)
    show = ("config", "show", "--config", str(stream.config))
    with commands.background(*show) as showing:
        assert showing.command.wait() == 0
        for told in (commands.run(*show), showing.output.read_text()):
            assert ADDRESS in told
            assert "prod" not in told
            assert "sasl" not in told


def test_half_a_line_waits_for_its_rest(tmp_path: Path) -> None:
    path = tmp_path / "rankings.jsonl"
    lines = LineReader(path)
    assert list(lines.new()) == []
    with path.open("a") as file:
        file.write('{"a": 1}\n{"a"')
        file.flush()
        assert list(lines.new()) == [b'{"a": 1}\n']
        file.write(": 2}\n")
        file.flush()
        assert list(lines.new()) == [b'{"a": 2}\n']


def test_the_first_ranking_has_nothing_to_compare_with(stream: DemoStream, tmp_path: Path) -> None:
    first = replace(ranking(stream, 1), selection=None)
    path = tmp_path / "rankings.jsonl"
    path.write_bytes(encode_ranking(first, "json") + b"\n")
    (seen,) = follow_rankings(path, 1, list, lambda: 0.0)
    assert seen.ranking == first
    assert "75%" in live(stream, ranking(stream, 1), terminal=True)
    assert "%" not in live(stream, seen.ranking, terminal=True)


def test_speed_is_records_between_rankings(stream: DemoStream) -> None:
    first, last = TimedRanking(ranking(stream, 3), 10.0), TimedRanking(ranking(stream, 7), 12.0)
    assert speed([first, last]) == 4 * CHUNK / 2
    assert speed([first]) is None
    assert speed([]) is None


def test_useless_features_in_the_top_are_counted(stream: DemoStream) -> None:
    good = ChosenFeatures.top(stream, ranking(stream, 0))
    assert good.useless == 0
    assert good.count == pytest.approx(0.3 * stream.features, abs=1)
    bad = ChosenFeatures.top(stream, ranking(stream, 0, best="last"))
    assert bad.count == good.count
    assert 30 <= bad.useless <= stream.useless


def test_useless_features_spoil_the_clusters(stream: DemoStream) -> None:
    useful = [~view.useless for view in stream.views]
    assert quality(stream, useful).raw > quality(stream, everything(stream)).raw + 0.3


@pytest.mark.parametrize("passes", [1, 2])
def test_as_many_records_are_announced_as_come(stream: DemoStream, passes: int) -> None:
    told = describe(stream, passes)
    assert told.endswith(f" {passes * stream.records:,} records.")
    assert ("again" in told) is (passes > 1)


def test_the_summary_tells_of_gaps(stream: DemoStream) -> None:
    seen = [TimedRanking(ranking(stream, number), float(number)) for number in (1, 2, 3)]
    told = summary(stream, seen, seen)
    assert f"{3 * CHUNK:,} records in 3 chunks of {CHUNK} gave 3 rankings, each" in told
    assert f"{CHUNK} records/s" in told
    assert "gaps" in summary(stream, [seen[0], seen[2]], [])


def live(stream: DemoStream, published: RankingMessage, *, terminal: bool) -> str:
    out = io.StringIO()
    screen = DemoDisplay(Console(file=out, force_terminal=terminal, width=120), stream, passes=1)
    with screen.live():
        screen.show(published)
    return out.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_the_screen_shows_weights_and_names(stream: DemoStream, terminal: bool) -> None:
    told = live(stream, ranking(stream, 1), terminal=terminal)
    assert stream.views[1].names[0] in told
    assert "0.25" in told
    assert ("\x1b" in told) is terminal
