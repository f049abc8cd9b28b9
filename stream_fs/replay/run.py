"""A replay: files through the pipeline, from their beginning or from a checkpoint."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from threadpoolctl import threadpool_limits

from stream_fs.errors import CorruptJournal, InvalidParameter, ReplayChanged
from stream_fs.pipeline import events
from stream_fs.pipeline.ports import Partition
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.pipeline.transaction import Runtime
from stream_fs.pipeline.worker import Worker
from stream_fs.replay.input import InputMark, RecordSequence
from stream_fs.replay.journal import Journal, earlier
from stream_fs.replay.outputs import NoOutput, Output
from stream_fs.replay.sources import Source
from stream_fs.replay.transport import FileTransport
from stream_fs.wire import FORMATS

_WIDTH: Final = 120


def identity(settings: StreamSettings, topic: str, more: Mapping[str, object]) -> dict[str, str]:
    """By name, in words; `more` is what the settings do not say."""
    cut, letters = settings.chunk_policy, settings.dead_letters
    selector = settings.params.to_dict()
    views = {view["name"]: view for view in selector.pop("views")}
    facts: dict[str, Any] = {
        "stream.name": settings.stream,
        "stream.topics": topic,
        "format of the records": settings.record_format,
        "chunk.records": cut.records,
        "records of the first chunk": cut.first,
        "chunk.max_span": cut.max_span,
        "output.top": settings.output_top,
        "output.format": settings.output_format,
        "dead_letters.policy": letters.policy,
        "dead_letters.max_open_bytes": letters.max_open_bytes,
        "bytes of the largest dead letter": letters.largest,
        "limits.record_bytes": settings.limits.record_bytes,
        "limits.views": settings.limits.views,
        **{
            f"view {view.name}": {**views[view.name], "dtype": view.dtype}
            for view in settings.views
        },
        **{f"selector.{name}": value for name, value in selector.items()},
        **more,
    }
    return {name: repr(value) for name, value in facts.items()}


LATER: Final = {"dead_letters.max_open_bytes", "bytes of the largest dead letter"}
"""Facts that are missing in checkpoints of releases up to 0.1."""


def check_same(checkpoint: str, before: Mapping[str, Any], now: Mapping[str, str]) -> None:
    """Raises `ReplayChanged` with every difference."""
    differences = [
        f"{name}: {_shown(before.get(name))} → {_shown(now.get(name))}"
        for name in dict.fromkeys([*now, *before])
        if before.get(name) != now.get(name) and (name in before or name not in LATER)
    ]
    if differences:
        raise ReplayChanged(checkpoint, differences)


def _shown(value: object) -> str:
    text = "not there" if value is None else str(value)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


@dataclass(frozen=True)
class Plan:
    """What to replay, and where to."""

    settings: StreamSettings
    topic: str
    """The input topic that the records are said to be of; the partition is 0."""
    sources: Sequence[Source]
    rankings: Output
    letters: Output
    checkpoint: Path | None
    timestamp: Callable[[int], int] = lambda _: 0
    """Of a record by its number, milliseconds since 1970."""
    more: Mapping[str, object] = field(default_factory=dict)
    """What else the output depends on, by name."""

    def __post_init__(self) -> None:
        """Refuse files that cannot go through one pipeline."""
        if len({source.format for source in self.sources}) != 1:
            titles = sorted({FORMATS[source.format].title for source in self.sources})
            raise InvalidParameter(f"give files of one format, not of {' and '.join(titles)}")

    @property
    def place(self) -> Partition:
        """The partition that the files stand for."""
        return Partition(self.topic, 0)


@dataclass
class Summary:
    """What a replay has done so far, and what it has found already done."""

    resumed: int = 0
    """Records that were behind it when it began."""
    position: int = 0
    """Records read."""
    next: int = 0
    """The record behind the last full chunk."""
    chunk: int = 0
    """The last full chunk, counted from 1."""
    rankings: int = 0
    letters: Counter[str] = field(default_factory=Counter)
    """By reason: dead letters that were published, or bad records that were skipped."""
    seconds: float = 0.0
    remarks: list[str] = field(default_factory=list)
    """What went otherwise than it should, although it goes on."""

    skipping: bool = False
    """Whether bad records are skipped, and so wait for nothing."""
    unranked: int = 0
    """Good records that were read, and are in no chunk yet."""

    @property
    def waiting(self) -> int:
        """Good records behind the last full chunk: they are in no ranking."""
        return min(self.unranked, self._behind)

    @property
    def waiting_letters(self) -> int:
        """Bad records among them: they become dead letters with their chunk."""
        return 0 if self.skipping else self._behind - self.waiting

    @property
    def _behind(self) -> int:
        return max(0, self.position - self.next)


def replay(
    plan: Plan,
    *,
    stopping: Callable[[], bool] = lambda: False,
    told: Callable[[Summary], None] = lambda _: None,
    crash_hook: Callable[[str], None] = lambda _: None,
) -> Summary:
    """Go through the files to their end, or until asked to stop; then save where it stands.

    `told` is called now and then, `crash_hook` with every step of every commit.
    """
    # The format is that of the files; where a new partition begins is a question for brokers, and
    # with a single partition there is nothing to merge.
    settings = replay_settings(
        replace(
            plan.settings, record_format=plan.sources[0].format, start="earliest", merge_every=None
        )
    )
    summary = Summary(skipping=settings.dead_letters.policy == "skip")
    began = time.monotonic()
    with _opened(plan, settings) as transport, threadpool_limits(1):
        reading = transport.reading
        assert reading is not None
        observer = _Observer(summary, reading.expected)
        worker = Worker(
            [plan.topic],
            settings,
            transport,
            Runtime(time.monotonic, observer, crash_hook),
            jitter=lambda: 0.0,
            grace=math.inf,
        )
        while not stopping():
            chunks, ended = observer.chunks, reading.exhausted
            worker.run_once()
            summary.position = reading.position
            summary.seconds = time.monotonic() - began
            told(summary)
            busy = any(task.busy for task in worker.tasks)
            if ended and not busy and chunks == observer.chunks:
                break  # in a whole turn there was nothing to read and nothing to do
        worker.stop()
    summary.seconds = time.monotonic() - began
    return summary


def replay_settings(settings: StreamSettings) -> StreamSettings:
    """The settings with the owner of a replay's state: no consumer group takes part in it."""
    return replace(settings, group=f"replay of {settings.stream}")


@contextmanager
def _opened(plan: Plan, settings: StreamSettings) -> Iterator[FileTransport]:
    """Everything that the pipeline needs, as the last commit has left it."""
    with ExitStack() as stack:
        journal = Journal(plan.checkpoint)
        stack.callback(journal.close)
        now = identity(
            settings,
            plan.topic,
            {"dead letters kept": not isinstance(plan.letters, NoOutput), **plan.more},
        )
        before = earlier(journal)
        if before.run is not None:
            check_same(journal.name, before.run, now)
        outputs = {
            settings.rankings_topic: plan.rankings,
            settings.dead_letter_topic: plan.letters,
        }
        for topic, output in outputs.items():
            stack.callback(output.close)
            output.begin(_length(journal, before.outputs, topic), journal.name)
        transport = FileTransport(
            plan.place,
            settings.state_topics[plan.topic],
            journal,
            outputs,
            RecordSequence(plan.sources, before.input),
            plan.timestamp,
        )
        if before.run is None:
            transport.first_notes = {"run": now}
        yield transport


def _length(journal: Journal, lengths: Mapping[str, int], topic: str) -> int:
    if lengths and topic not in lengths:
        raise CorruptJournal(f"{journal.name} does not tell how long its output is")
    return lengths.get(topic, 0)


class _Observer:
    """Counts, for the summary."""

    def __init__(self, summary: Summary, left: InputMark | None) -> None:
        self._summary = summary
        self._left = left
        self._unpublished: deque[int] = deque()
        """Records of the chunks that are folded in, and whose rankings are not out yet."""
        self.chunks = 0

    def __call__(self, event: events.Event) -> None:
        """Take notice of what matters here."""
        summary = self._summary
        match event:
            case events.Restored():
                summary.chunk = event.chunk + event.behind
                # The model may be older: what was published since is computed once more.
                summary.next = event.offset if self._left is None else self._left.offset
                summary.resumed = summary.next
                if event.fallback is not None:
                    summary.remarks.append(f"an older model was used: {event.fallback}")
            case events.ReplayDiverged():
                summary.remarks.append(
                    f"chunk {event.chunk}, computed again, is not as it was written: another CPU?"
                )
            case events.RecordsRead():
                summary.unranked += event.good
                if summary.skipping:
                    summary.letters.update(event.bad)
            case events.ChunkUpdated():
                self.chunks += 1
                if event.replayed:  # published by an earlier life
                    summary.unranked -= event.report.rows
                else:
                    self._unpublished.append(event.report.rows)
            case events.ChunkCommitted():
                summary.rankings += 1
                summary.chunk += 1
                summary.next = event.next_offset
                summary.unranked -= self._unpublished.popleft()
                if not summary.skipping:
                    summary.letters.update(event.letters)
            case _:
                pass
