"""A broker with a filled input topic, and what an undisturbed run publishes from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stream_fs.broker import Broker
from tests.support.recovery.comparison import Published
from tests.support.recovery.content import Content, Source, chunks_in, pieces
from tests.support.recovery.launchers import Launcher
from tests.support.recovery.stream_run import SAME_MEMBER, StreamRun
from tests.support.topics import Topics


@dataclass(frozen=True)
class PreparedStream:
    """`expected` is what every run through this content must publish."""

    bootstrap: str
    content: Content
    folder: Path
    start: Launcher
    expected: Published
    partitions: int = 1

    def new_run(
        self, name: str, properties: str = SAME_MEMBER, settings: Sequence[str] = ()
    ) -> StreamRun:
        """Another run, with a name of its own."""
        return StreamRun(
            self.bootstrap,
            self.content,
            self.folder,
            name,
            self.start,
            properties,
            settings=settings,
        )


@contextmanager
def prepare_stream(
    broker: Broker, folder: Path, chunks: int, start: Launcher
) -> Iterator[PreparedStream]:
    """Fill a topic during an undisturbed run.

    The undisturbed process gets the input piece by piece, and waits in the middle of a chunk; later
    runs find all of it.
    """
    topics = Topics(broker.bootstrap)
    try:
        content = Content(topics.create("recovery"), chunks)
        source = Source(broker.bootstrap, content.topic)
        with StreamRun(broker.bootstrap, content, folder, "undisturbed", start) as stream_run:
            process = stream_run.start()
            written = 0
            for piece in pieces(content):
                source.write(piece)
                written += piece
                stream_run.reach(process, chunks_in(written))
            expected = stream_run.finish(process)
        yield PreparedStream(broker.bootstrap, content, folder, start, expected)
    finally:
        topics.remove()
