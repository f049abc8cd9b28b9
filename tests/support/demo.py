"""The files of the demo, and rankings of its stream."""

from __future__ import annotations

from stream_fs.demo.dataset import CHUNK, DemoStream
from stream_fs.wire import RankingMessage
from stream_fs.wire.rankings.message import Feature, Fit, RankedView, RecordCounts, SelectionChange

ADDRESS = "localhost:1"


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
