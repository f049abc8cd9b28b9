"""The display while the demo runs: progress, view weights, and the best features."""

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
    """Reads complete lines that are appended to a file, each once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0

    def new_lines(self) -> Iterator[bytes]:
        """The lines since the last call, without an incomplete last line."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._position)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._position += len(line)
                yield line


TIMEOUT: Final = 180.0
"""Max seconds without a new ranking."""
_POLL_SECONDS: Final = 0.1


@dataclass(frozen=True)
class TimedRanking:
    """A ranking, and the time at which it was read."""

    ranking: RankingMessage
    time: float


def follow_rankings(
    path: Path,
    last: int,
    commands: Callable[[], list[BackgroundCommand]],
    clock: Callable[[], float],
) -> Iterator[TimedRanking]:
    """The rankings in a growing file, as they are appended, up to the sequence number ``last``.

    Raises `DemoError` if a command fails, or if there is no new ranking for too long.
    """
    lines, latest = LineReader(path), clock()
    while True:
        # Checked before the file is read: a command that succeeds may write until it ends.
        for command in commands():
            command.check()
        for line in lines.new_lines():
            latest = clock()
            timed = TimedRanking(decode_ranking(line), latest)
            yield timed
            if timed.ranking.sequence >= last:
                return
        if clock() - latest > TIMEOUT:
            raise DemoError(f"no ranking for {TIMEOUT:.0f} s")
        time.sleep(_POLL_SECONDS)


def records_per_second(timed: Sequence[TimedRanking]) -> float | None:
    """Records per second between the first and the last of these rankings; None for too few."""
    if len(timed) < 2 or timed[-1].time <= timed[0].time:
        return None
    return (timed[-1].ranking.records.total - timed[0].ranking.records.total) / (
        timed[-1].time - timed[0].time
    )


_TOP = 4
"""Number of features shown per view."""
_BAR = 16
_LINE_EVERY = 5
"""Without a terminal, a line is printed for every fifth ranking."""


class DemoDisplay:
    """On a terminal a table that is updated in place, otherwise lines for some of the rankings."""

    def __init__(self, console: Console, stream: DemoStream, passes: int) -> None:
        """`passes` is the number of times that the data file is streamed."""
        self._console = console
        self._records = passes * stream.records
        self._views = {view.name: view for view in stream.views}
        self._live: Live | None = None

    @contextmanager
    def live(self) -> Iterator[None]:
        """A context in which rankings are shown; the last one remains on the terminal."""
        if not self._console.is_terminal:
            yield
            return
        with Live(console=self._console, refresh_per_second=8) as self._live:
            yield

    def show(self, ranking: RankingMessage) -> None:
        """Show a published ranking."""
        if self._live is not None:
            self._live.update(self._table(ranking))
        elif ranking.sequence % _LINE_EVERY == 1:
            self._console.print(self._line(ranking), soft_wrap=True, highlight=False)

    def _line(self, ranking: RankingMessage) -> str:
        views = "; ".join(
            f"{view.name} {view.weight:.2f}: {', '.join(self._top_features(view)[:2])}"
            for view in ranking.views
        )
        return f"ranking {ranking.sequence} after {ranking.records.total} records: {views}"

    def _table(self, ranking: RankingMessage) -> RenderableType:
        table = Table(title=f"ranking {ranking.sequence}", title_justify="left", expand=True)
        table.add_column("view")
        table.add_column("weight", no_wrap=True)
        table.add_column("top unchanged", justify="right")
        table.add_column("best features", ratio=1)
        for view in ranking.views:
            bar = Text("█" * round(view.weight * _BAR), style="cyan")
            unchanged = (
                "" if ranking.selection is None else f"{ranking.selection[view.name].overlap:.0%}"
            )
            weight = Text.assemble(f"{view.weight:.2f} ", bar)
            table.add_row(view.name, weight, unchanged, ", ".join(self._top_features(view)))
        progress = Table.grid(padding=(0, 1))
        progress.add_row(
            ProgressBar(total=self._records, completed=ranking.records.total, width=40),
            f"{ranking.records.total} of {self._records} records",
        )
        return Group(table, progress)

    def _top_features(self, view: RankedView) -> list[str]:
        names = self._views[view.name].names
        return [names[feature.index] for feature in view.features[:_TOP]]
