"""Displays of rankings: JSON, lines of text, or a live table on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import BinaryIO, Final, Protocol, Self, TextIO

from rich.bar import Bar
from rich.box import ROUNDED
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from stream_fs.records import Message
from stream_fs.wire import RankingMessage, as_json, ranking_format
from stream_fs.wire.rankings.message import Feature, RankedView

_BAR_WIDTH: Final = 8
_NAME_WIDTH: Final = 20
"""Longer names of views are wrapped."""


class Display(Protocol):
    """Shows rankings."""

    def show(self, message: Message, ranking: RankingMessage) -> bool:
        """Show a ranking, unless it is filtered out; returns whether it was shown."""
        ...


class Choice:
    """Filters rankings: only merged ones, once a stream has one, or those of partitions as well."""

    def __init__(self, *, partitions: bool) -> None:
        self._partitions = partitions
        self._whole: set[str] = set()

    def takes(self, ranking: RankingMessage) -> bool:
        """Whether to show a ranking, given those before it."""
        if ranking.scope == "merged":
            self._whole.add(ranking.stream)
            return True
        return self._partitions or ranking.stream not in self._whole


class JsonLines:
    """One JSON document per line, as published."""

    def __init__(self, to: BinaryIO) -> None:
        self._to = to

    def show(self, message: Message, ranking: RankingMessage) -> bool:  # noqa: ARG002  # the bytes are shown
        """Write the document."""
        value = as_json(message.value or b"", ranking_format(message.headers))
        self._to.write(value + b"\n")
        self._to.flush()
        return True


class PlainLines:
    """One line per ranking and view, without colour, for `grep` and `cut`."""

    def __init__(self, to: TextIO, top: int, *, partitions: bool) -> None:
        self._to = to
        self._top = top
        self._choice = Choice(partitions=partitions)

    def show(self, message: Message, ranking: RankingMessage) -> bool:  # noqa: ARG002  # as read
        """Write the lines of the ranking."""
        if not self._choice.takes(ranking):
            return False
        for line in plain_lines(ranking, self._top):
            self._to.write(line + "\n")
        self._to.flush()
        return True


def plain_lines(ranking: RankingMessage, top: int) -> Iterator[str]:
    """The lines of a ranking; the first one has no overlap, a merged one no imputed rows."""
    start = (
        f"{_printable(place(ranking))} sequence {ranking.sequence} records {records(ranking)} "
        f"as of {moment(ranking.as_of)}"
    )
    for view in ranking.views:
        overlap = overlap_of(ranking, view)
        known = "" if overlap is None else f" overlap {overlap:.2f}"
        known += _imputed(ranking, view)
        best = " ".join(
            f"{label(feature)}:{feature.relevance:.3g}" for feature in view.features[:top]
        )
        yield f"{start} view {_printable(view.name)} weight {view.weight:.3f}{known} top {best}"


def _imputed(ranking: RankingMessage, view: RankedView) -> str:
    imputation = (ranking.records.imputed or {}).get(view.name)
    if imputation is None:
        return ""
    return f" imputed {imputation.rows} n/j {imputation.weight:.2f}"


class LiveTable:
    """The newest rankings in a table on a terminal, merged ones first."""

    def __init__(
        self, title: str, top: int, console: Console | None = None, *, partitions: bool
    ) -> None:
        self._title = title
        self._top = top
        self._choice = Choice(partitions=partitions)
        self._last: dict[str, RankingMessage] = {}
        self._count = 0
        # Messages on standard error are printed above the table, unless they are redirected.
        self._live = Live(
            self._all(),
            console=console or Console(),
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=sys.stderr.isatty(),
        )

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, message: Message, ranking: RankingMessage) -> bool:  # noqa: ARG002  # as read
        """Replace the previous ranking of the same source."""
        if not self._choice.takes(ranking):
            return False
        self._count += 1
        self._last[ranking.key] = ranking
        self._last = {k: last for k, last in self._last.items() if self._choice.takes(last)}
        self._live.update(self._all(), refresh=True)
        return True

    def _all(self) -> Group:
        shown = f"{self._count} rankings" if self._count else "waiting for a ranking"
        ranked = sorted(self._last.values(), key=_order)
        width = max((len(view.name) for ranking in ranked for view in ranking.views), default=0)
        parts: list[RenderableType] = [Text(self._title, style="bold")]
        for ranking in ranked:
            parts += [Text(), _heading(ranking), self._table(ranking, min(width, _NAME_WIDTH))]
        return Group(*parts, Text(), Text(f"{shown}, Ctrl-C ends", style="dim"))

    def _table(self, ranking: RankingMessage, width: int) -> Table:
        table = Table(box=ROUNDED, expand=True)
        table.add_column("view", width=width, overflow="fold")
        table.add_column("α", width=5, no_wrap=True)
        table.add_column("", width=_BAR_WIDTH, no_wrap=True)
        table.add_column("overlap", width=7, no_wrap=True, justify="right")
        table.add_column("top features", ratio=1)
        for view in ranking.views:
            overlap = overlap_of(ranking, view)
            table.add_row(
                Text(_printable(view.name), style="bold"),
                Text(f"{view.weight:.3f}"),
                Bar(1.0, 0.0, min(1.0, view.weight), width=_BAR_WIDTH, color="cyan"),
                Text("" if overlap is None else f"{overlap:.0%}", style=_mood(overlap)),
                _features(view.features[: self._top]),
            )
        return table


def _heading(ranking: RankingMessage) -> Text:
    about = (
        f"sequence {ranking.sequence}  records {records(ranking)}  as of {moment(ranking.as_of)}"
    )
    return Text.assemble((_printable(place(ranking)), "bold cyan"), "  ", about)


def _order(ranking: RankingMessage) -> tuple[bool, str, str, int]:
    merged = ranking.scope == "merged"
    return not merged, ranking.stream, ranking.topic or "", ranking.partition or 0


def place(ranking: RankingMessage) -> str:
    """The source of a ranking: a partition, or the whole stream."""
    return "merged" if ranking.topic is None else f"{ranking.topic}/{ranking.partition}"


def records(ranking: RankingMessage) -> str:
    """Records of the chunk and in total, and dead letters if there are any."""
    counts = ranking.records
    text = f"{counts.total}" if counts.chunk is None else f"{counts.chunk}/{counts.total}"
    return f"{text} ({counts.dead_letters} bad)" if counts.dead_letters else text


def moment(milliseconds: int) -> str:
    """A readable timestamp in UTC; a producer may have set any number."""
    try:
        found = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms"
    return found.isoformat(timespec="seconds").replace("+00:00", "Z")


def overlap_of(ranking: RankingMessage, view: RankedView) -> float | None:
    """The share of a view's features that the previous ranking has, too; None in the first one."""
    return None if ranking.selection is None else ranking.selection[view.name].overlap


def label(feature: Feature) -> str:
    """The name of a feature, or its index."""
    return str(feature.index) if feature.name is None else _printable(feature.name)


def _features(features: tuple[Feature, ...]) -> Text:
    text = Text()
    for number, feature in enumerate(features):
        text.append("  " if number else "")
        text.append(label(feature), style="bold")
        text.append(f" {feature.relevance:.3g}", style="dim")
    return text


def _mood(overlap: float | None) -> str:
    return "yellow" if overlap is not None and overlap < 0.5 else ""


def _printable(text: str) -> str:
    """A name on one line, without control sequences."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
