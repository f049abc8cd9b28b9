"""Streams, members and processes of a test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from stream_fs.pipeline import worker
from tests.integration.service.members import Member
from tests.integration.service.services import COMMAND, Service
from tests.integration.service.stream import Changes, Stream
from tests.support.topics import Topics

MakeStream = Callable[..., Stream]
MakeMember = Callable[..., Member]
MakeService = Callable[..., Service]


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members take turns in one thread: one that waits for messages keeps the others waiting."""
    monkeypatch.setattr(worker, "IDLE_WAIT", 0.02)


@pytest.fixture
def make_stream(topics: Topics, tmp_path: Path) -> Iterator[MakeStream]:
    made: list[Stream] = []

    def make(*arguments: Any, **options: Any) -> Stream:
        made.append(Stream(topics, tmp_path, *arguments, **options))
        return made[-1]

    yield make
    for stream in made:
        stream.remove()


@pytest.fixture
def stream(make_stream: MakeStream) -> Stream:
    """The default stream, with one partition."""
    return make_stream()


@pytest.fixture
def member() -> Iterator[MakeMember]:
    """Makes members, and kills those that the test has left running."""
    made: list[Member] = []

    def make(*arguments: Any, **options: Any) -> Member:
        made.append(Member(*arguments, **options))
        return made[-1]

    yield make
    for one in made:
        one.kill()


@pytest.fixture
def service() -> Iterator[MakeService]:
    """Starts processes, and kills those that the test has left running."""
    made: list[Service] = []

    def make(
        stream: Stream, changes: Changes | None = None, *, program: Sequence[str] = COMMAND
    ) -> Service:
        made.append(Service(stream.file(changes), program))
        return made[-1]

    yield make
    for one in made:
        one.kill()
