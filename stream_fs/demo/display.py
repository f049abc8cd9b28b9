"""What one sees while the demo runs: progress, view weights, and the features that lead."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from stream_fs.demo.dataset import DemoStream
from stream_fs.demo.subprocesses import BackgroundCommand, DemoError
from stream_fs.wire import RankingMessage, decode_ranking
from stream_fs.wire.rankings.message import RankedView


class LineReader:
    """The whole lines that are appended to a file, each once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def new(self) -> Iterator[bytes]:
        """The lines since the last call; half a line waits for its rest."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._read += len(line)
                yield line


TIMEOUT: Final = 180.0
"""Seconds without any news after which something must be wrong."""
_LOOK: Final = 0.1


@dataclass(frozen=True)
class TimedRanking:
    """A ranking, and when it was seen."""

    ranking: RankingMessage
    time: float


def follow_rankings(
    path: Path, last: int, parts: Callable[[], list[BackgroundCommand]], clock: Callable[[], float]
) -> Iterator[TimedRanking]:
    """The rankings in a growing file up to the one with this sequence, as they appear.

    Raises `DemoFailed` when a part of the demo ends badly, or when nothing comes any more.
    """
    lines, news = LineReader(path), clock()
    while True:
        # Looked at before the file: what ended in order may have written until then.
        for part in parts():
            part.check()
        for line in lines.new():
            news = clock()
            seen = TimedRanking(decode_ranking(line), news)
            yield seen
            if seen.ranking.sequence >= last:
                return
        if clock() - news > TIMEOUT:
            raise DemoError(f"no ranking for {TIMEOUT:.0f} s")
        time.sleep(_LOOK)


def speed(seen: Sequence[TimedRanking]) -> float | None:
    """Records in a second from the first of these rankings to the last; None for too few."""
    if len(seen) < 2 or seen[-1].time <= seen[0].time:
        return None
    return (seen[-1].ranking.records.total - seen[0].ranking.records.total) / (
        seen[-1].time - seen[0].time
    )


_LEADING = 4
"""Features of a view that are shown."""
_BAR = 16
_TOLD_EVERY = 5
"""Where there is no terminal."""


class DemoDisplay:
    """A table that changes in place on a terminal; elsewhere a line for some of the rankings."""

    def __init__(self, console: Console, stream: DemoStream, passes: int) -> None:
        """`passes` is how often the file of the stream is streamed."""
        self._console = console
        self._records = passes * stream.records
        self._views = {view.name: view for view in stream.views}
        self._live: Live | None = None

    @contextmanager
    def live(self) -> Iterator[None]:
        """As long as there is something to show; the last state stays."""
        if not self._console.is_terminal:
            yield
            return
        with Live(console=self._console, refresh_per_second=8) as self._live:
            yield

    def show(self, ranking: RankingMessage) -> None:
        """A ranking has been published."""
        if self._live is not None:
            self._live.update(self._picture(ranking))
        elif ranking.sequence % _TOLD_EVERY == 1:
            self._console.print(self._line(ranking), soft_wrap=True, highlight=False)

    def _line(self, ranking: RankingMessage) -> str:
        views = "; ".join(
            f"{view.name} {view.weight:.2f}: {', '.join(self._leading(view)[:2])}"
            for view in ranking.views
        )
        return f"ranking {ranking.sequence} after {ranking.records.total} records: {views}"

    def _picture(self, ranking: RankingMessage) -> RenderableType:
        table = Table(title=f"ranking {ranking.sequence}", title_justify="left", expand=True)
        table.add_column("view")
        table.add_column("weight", no_wrap=True)
        table.add_column("top unchanged", justify="right")
        table.add_column("leading features", ratio=1)
        for view in ranking.views:
            bar = Text("█" * round(view.weight * _BAR), style="cyan")
            unchanged = (
                "" if ranking.selection is None else f"{ranking.selection[view.name].overlap:.0%}"
            )
            weight = Text.assemble(f"{view.weight:.2f} ", bar)
            table.add_row(view.name, weight, unchanged, ", ".join(self._leading(view)))
        done = Table.grid(padding=(0, 1))
        done.add_row(
            ProgressBar(total=self._records, completed=ranking.records.total, width=40),
            f"{ranking.records.total} of {self._records} records",
        )
        return Group(table, done)

    def _leading(self, view: RankedView) -> list[str]:
        names = self._views[view.name].names
        return [names[feature.index] for feature in view.features[:_LEADING]]
