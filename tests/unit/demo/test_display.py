from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from stream_fs.demo.dataset import CHUNK, DemoStream
from stream_fs.demo.display import (
    DemoDisplay,
    LineReader,
    TimedRanking,
    follow_rankings,
    records_per_second,
)
from stream_fs.wire import RankingMessage, encode_ranking
from tests.support.demo import ranking


def shown(stream: DemoStream, published: RankingMessage, *, terminal: bool) -> str:
    out = io.StringIO()
    screen = DemoDisplay(Console(file=out, force_terminal=terminal, width=120), stream, passes=1)
    with screen.live():
        screen.show(published)
    return out.getvalue()


def test_an_incomplete_line_is_read_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "rankings.jsonl"
    lines = LineReader(path)
    assert list(lines.new_lines()) == []
    with path.open("a") as file:
        file.write('{"a": 1}\n{"a"')
        file.flush()
        assert list(lines.new_lines()) == [b'{"a": 1}\n']
        file.write(": 2}\n")
        file.flush()
        assert list(lines.new_lines()) == [b'{"a": 2}\n']


def test_the_first_ranking_has_nothing_to_compare_with(stream: DemoStream, tmp_path: Path) -> None:
    first = replace(ranking(stream, 1), selection=None)
    path = tmp_path / "rankings.jsonl"
    path.write_bytes(encode_ranking(first, "json") + b"\n")
    (seen,) = follow_rankings(path, 1, list, lambda: 0.0)
    assert seen.ranking == first
    assert "75%" in shown(stream, ranking(stream, 1), terminal=True)
    assert "%" not in shown(stream, seen.ranking, terminal=True)


def test_speed_is_records_between_rankings(stream: DemoStream) -> None:
    first, last = TimedRanking(ranking(stream, 3), 10.0), TimedRanking(ranking(stream, 7), 12.0)
    assert records_per_second([first, last]) == 4 * CHUNK / 2
    assert records_per_second([first]) is None
    assert records_per_second([]) is None


@pytest.mark.parametrize("terminal", [True, False])
def test_the_screen_shows_weights_and_names(stream: DemoStream, terminal: bool) -> None:
    text = shown(stream, ranking(stream, 1), terminal=terminal)
    assert stream.views[1].names[0] in text
    assert "0.25" in text
    assert ("\x1b" in text) is terminal
