"""Rankings for a reader: the same facts as lines, as JSON and as a table."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from stream_fs.cli.ranking_display import JsonLines, LiveTable, PlainLines
from stream_fs.records import Message
from stream_fs.wire import RankingFormat, RankingMessage, encode_ranking, ranking_payload
from stream_fs.wire.rankings.message import Feature
from tests.support.rankings import example_ranking

WIDE = 160


def published(ranking: RankingMessage, format: RankingFormat = "json") -> Message:
    payload = ranking_payload(ranking, format)
    return Message("rankings", 0, 3, 0, payload.key, payload.value, payload.headers)


def plain(ranking: RankingMessage, top: int = 2) -> list[str]:
    to = io.StringIO()
    PlainLines(to, top, partitions=False).show(published(ranking), ranking)
    return to.getvalue().splitlines()


def table(*rankings: RankingMessage, top: int = 2, **options: bool) -> str:
    to = io.StringIO()
    console = Console(file=to, width=WIDE, force_terminal=options.get("terminal", False))
    with LiveTable("title", top, console, partitions=options.get("partitions", True)) as shown:
        for ranking in rankings:
            shown.show(published(ranking), ranking)
    return to.getvalue()


@pytest.mark.parametrize("format", ["json", "msgpack"])
def test_json_is_the_document_on_one_line(format: RankingFormat) -> None:
    ranking = example_ranking("later")
    to = io.BytesIO()
    JsonLines(to).show(published(ranking, format), ranking)
    assert to.getvalue() == encode_ranking(ranking, "json") + b"\n"


def test_json_is_not_touched() -> None:
    ranking = example_ranking("later")
    message = published(ranking)._replace(value=b'{"schema":  1, "more": 1.50}')
    to = io.BytesIO()
    JsonLines(to).show(message, ranking)
    assert to.getvalue() == b'{"schema":  1, "more": 1.50}\n'


def test_a_line_for_each_view() -> None:
    ranking = example_ranking("later")
    lines = plain(ranking)
    assert len(lines) == len(ranking.views)
    for line, view in zip(lines, ranking.views, strict=True):
        assert ranking.selection is not None
        assert line.startswith(f"{ranking.topic}/{ranking.partition} sequence {ranking.sequence} ")
        assert f" records {ranking.records.chunk}/{ranking.records.total}" in line
        assert f" view {view.name} weight {view.weight:.3f} " in line
        assert f" overlap {ranking.selection[view.name].overlap:.2f} " in line
        words = line.split(" top ")[1].split(" ")
        assert words == [
            f"{feature.index if feature.name is None else feature.name}:{feature.relevance:.3g}"
            for feature in view.features[:2]
        ]


def test_time_is_utc() -> None:
    (line, *_) = plain(replace(example_ranking("later"), as_of=1_710_141_300_000))
    assert " as of 2024-03-11T07:15:00Z " in line


def test_a_first_ranking_has_nothing_to_overlap_with() -> None:
    assert all(" overlap " not in line for line in plain(example_ranking("first")))


def test_what_is_imputed_is_in_the_lines_of_a_chunk() -> None:
    later = example_ranking("later")
    assert " imputed 118 n/j 0.75 " in plain(later)[1]
    before = replace(later, records=replace(later.records, imputed=None))
    for ranking in (before, example_ranking("merged")):
        assert all(" imputed " not in line for line in plain(ranking))


def test_lines_have_no_colour_and_cannot_be_made_to() -> None:
    ranking = example_ranking("later")
    nasty = Feature(0, 0.5, "\x1b[31mred\nline")
    view = replace(ranking.views[0], name="a\tb", features=(nasty,))
    lines = plain(replace(ranking, views=(view,), selection=None))
    assert len(lines) == 1
    assert "view a\\tb " in lines[0]
    assert lines[0].endswith(" top \\x1b[31mred\\nline:0.5")


def test_dead_letters_are_told_where_there_are_any() -> None:
    ranking = example_ranking("later")
    some = replace(ranking, records=replace(ranking.records, dead_letters=3))
    none = replace(ranking, records=replace(ranking.records, dead_letters=0))
    assert "(3 bad)" in plain(some)[0]
    assert "bad" not in plain(none)[0]


def test_the_table_has_the_last_ranking_of_each_partition_and_merged_ones_first() -> None:
    later, merged = example_ranking("later"), example_ranking("merged")
    other = replace(later, partition=10)
    newer = replace(later, sequence=later.sequence + 1)
    displayed = table(replace(later, partition=2), other, later, newer, merged)
    headings = [line for line in displayed.splitlines() if "  as of " in line]
    assert [line.split()[0] for line in headings] == ["merged", "pumps/2", "pumps/3", "pumps/10"]
    assert f"  sequence {newer.sequence}  " in headings[2]
    assert "5 rankings" in displayed
    rows = [line for line in displayed.splitlines() if "│" in line and "top features" not in line]
    for row, view in zip(rows, [*merged.views, *3 * later.views], strict=True):
        name, weight, _, _, best = (cell.strip() for cell in row.split("│")[1:-1])
        assert (name, weight) == (view.name, f"{view.weight:.3f}")
        shown = [feature.name or str(feature.index) for feature in view.features[:2]]
        assert best.split()[::2] == shown


def test_once_a_stream_is_merged_its_partitions_are_shown_on_request_only() -> None:
    later, merged = example_ranking("later"), example_ranking("merged")
    foreign = replace(later, stream="another", partition=7)
    newer = replace(later, sequence=later.sequence + 1)
    displayed = table(later, merged, newer, foreign, partitions=False)
    headings = [line.split()[0] for line in displayed.splitlines() if "  as of " in line]
    assert headings == ["merged", "pumps/7"]
    assert "3 rankings" in displayed

    to = io.StringIO()
    lines = PlainLines(to, 2, partitions=False)
    shown = [lines.show(published(ranking), ranking) for ranking in (later, merged, newer, foreign)]
    assert shown == [True, True, False, True]
    assert f"sequence {newer.sequence} " not in to.getvalue()


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_table_keeps_what_matters_on_a_narrow_terminal(width: int) -> None:
    to = io.StringIO()
    with LiveTable("title", 2, Console(file=to, width=width), partitions=False) as shown:
        shown.show(published(example_ranking("later")), example_ranking("later"))
    for word in ("vibration", "0.410", "50%", "kurtosis"):
        assert word in to.getvalue()


def test_the_table_before_the_first_ranking_says_so() -> None:
    assert "waiting for a ranking" in table()


def test_names_are_shown_as_they_are() -> None:
    """Not as the markup that rich would take them for."""
    later = example_ranking("later")
    view = replace(later.views[0], name="[bold]v[/bold]", features=(Feature(0, 0.5, "[red]x"),))
    displayed = table(replace(later, views=(view,), selection=None), terminal=True)
    assert "[bold]v[/bold]" in displayed
    assert "[red]x" in displayed


def test_top_limits_the_features() -> None:
    later = example_ranking("later")
    assert len(plain(later, top=1)[0].split(" top ")[1].split(" ")) == 1
    document = json.loads(encode_ranking(later))
    assert len(document["views"][0]["features"]) > 1
