"""Where journeys take place: a broker with an input topic, and one undisturbed journey."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stream_fs.broker import Broker
from tests.support.recovery.comparison import Published
from tests.support.recovery.content import Content, Source, chunks_in, pieces
from tests.support.recovery.launchers import Start
from tests.support.recovery.stream_run import SAME_MEMBER, Journey
from tests.support.topics import Topics


@dataclass(frozen=True)
class Stage:
    """`expected` is what every journey through this content has to publish."""

    bootstrap: str
    content: Content
    folder: Path
    start: Start
    expected: Published
    partitions: int = 1

    def journey(
        self, name: str, properties: str = SAME_MEMBER, settings: Sequence[str] = ()
    ) -> Journey:
        """Another one, by a name of its own."""
        return Journey(
            self.bootstrap,
            self.content,
            self.folder,
            name,
            self.start,
            properties,
            settings=settings,
        )


@contextmanager
def stage(broker: Broker, folder: Path, chunks: int, start: Start) -> Iterator[Stage]:
    """Fill a topic, and work through it meanwhile without any disturbance.

    The undisturbed process gets it piece by piece, and has to wait in the middle of a chunk; the
    others will find all of it there.
    """
    topics = Topics(broker.bootstrap)
    try:
        content = Content(topics.create("recovery"), chunks)
        source = Source(broker.bootstrap, content.topic)
        with Journey(broker.bootstrap, content, folder, "undisturbed", start) as journey:
            life = journey.start()
            written = 0
            for piece in pieces(content):
                source.write(piece)
                written += piece
                journey.reach(life, chunks_in(written))
            expected = journey.finish(life)
        yield Stage(broker.bootstrap, content, folder, start, expected)
    finally:
        topics.remove()
