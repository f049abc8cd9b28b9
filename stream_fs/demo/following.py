"""Follow what is published, until the whole stream is in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from stream_fs.demo.commands import Background, DemoFailed
from stream_fs.demo.rankings import Lines
from stream_fs.wire import RankingMessage, decode_ranking

PATIENCE: Final = 180.0
"""Seconds without any news after which something must be wrong."""
_LOOK: Final = 0.1


@dataclass(frozen=True)
class Seen:
    """A ranking, and when it was seen."""

    ranking: RankingMessage
    time: float


def follow(
    path: Path, last: int, parts: Callable[[], list[Background]], clock: Callable[[], float]
) -> Iterator[Seen]:
    """The rankings in a growing file up to the one with this sequence, as they appear.

    Raises `DemoFailed` when a part of the demo ends badly, or when nothing comes any more.
    """
    lines, news = Lines(path), clock()
    while True:
        # Looked at before the file: what ended in order may have written until then.
        for part in parts():
            part.check()
        for line in lines.new():
            news = clock()
            seen = Seen(decode_ranking(line), news)
            yield seen
            if seen.ranking.sequence >= last:
                return
        if clock() - news > PATIENCE:
            raise DemoFailed(f"no ranking for {PATIENCE:.0f} s")
        time.sleep(_LOOK)


def speed(seen: Sequence[Seen]) -> float | None:
    """Records in a second from the first of these rankings to the last; None for too few."""
    if len(seen) < 2 or seen[-1].time <= seen[0].time:
        return None
    return (seen[-1].ranking.records.total - seen[0].ranking.records.total) / (
        seen[-1].time - seen[0].time
    )
