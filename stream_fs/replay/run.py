"""Running the pipeline on files, from their beginning or from a checkpoint."""

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
from stream_fs.replay.journal import Journal, read_saved_run
from stream_fs.replay.outputs import NoOutput, Output
from stream_fs.replay.sources import Source
from stream_fs.replay.transport import FileTransport
from stream_fs.wire import FORMATS

ADDED_FACTS: Final = {"dead_letters.max_open_bytes", "bytes of the largest dead letter"}
"""Facts that checkpoints of releases up to 0.1 do not contain."""
_MAX_WIDTH: Final = 120
"""Characters of a fact in an error message."""


@dataclass(frozen=True)
class Plan:
    """The inputs and outputs of a replay."""

    settings: StreamSettings
    topic: str
    """The input topic for which the files stand; the partition is 0."""
    sources: Sequence[Source]
    rankings: Output
    dead_letters: Output
    checkpoint: Path | None
    timestamp: Callable[[int], int] = lambda _: 0
    """The timestamp of a record by its number, in milliseconds since 1970."""
    more_facts: Mapping[str, object] = field(default_factory=dict)
    """Further facts that the output depends on, by name."""

    def __post_init__(self) -> None:
        """Refuse files of different formats."""
        if len({source.format for source in self.sources}) != 1:
            titles = sorted({FORMATS[source.format].title for source in self.sources})
            raise InvalidParameter(
                f"all files must have the same format, not {' and '.join(titles)}"
            )

    @property
    def partition(self) -> Partition:
        """The partition for which the files stand."""
        return Partition(self.topic, 0)


@dataclass
class Summary:
    """The counts of a replay so far."""

    resumed: int = 0
    """The record at which the replay continued an earlier run."""
    position: int = 0
    """Number of records read."""
    next: int = 0
    """The record after the last full chunk."""
    chunk: int = 0
    """The last full chunk, counted from 1."""
    rankings: int = 0
    dead_letters: Counter[str] = field(default_factory=Counter)
    """Published dead letters, or skipped bad records, by reason."""
    seconds: float = 0.0
    warnings: list[str] = field(default_factory=list)
    """Problems that did not stop the replay."""

    skipping: bool = False
    """Whether bad records are skipped, instead of published with their chunk."""
    unranked: int = 0
    """Number of good records that were read and are in no chunk yet."""

    @property
    def incomplete_records(self) -> int:
        """Number of good records after the last full chunk, which are in no ranking."""
        return min(self.unranked, self._behind)

    @property
    def incomplete_dead_letters(self) -> int:
        """Number of bad records there, which become dead letters with their chunk."""
        return 0 if self.skipping else self._behind - self.incomplete_records

    @property
    def _behind(self) -> int:
        return max(0, self.position - self.next)


def replay(
    plan: Plan,
    *,
    stop_requested: Callable[[], bool] = lambda: False,
    report: Callable[[Summary], None] = lambda _: None,
    crash_hook: Callable[[str], None] = lambda _: None,
) -> Summary:
    """Replay the files to their end, or until a stop is requested, and save the state.

    `report` is called after every poll, `crash_hook` at the steps of `Runtime`.
    """
    # The format is that of the files. A new partition starts at its beginning, and a single one is
    # not merged.
    settings = replay_settings(
        replace(
            plan.settings, record_format=plan.sources[0].format, start="earliest", merge_every=None
        )
    )
    summary = Summary(skipping=settings.dead_letters.policy == "skip")
    began = time.monotonic()
    with _open_transport(plan, settings) as transport, threadpool_limits(1):
        records = transport.records
        assert records is not None
        observer = _Observer(summary, records.expected)
        worker = Worker(
            [plan.topic],
            settings,
            transport,
            Runtime(time.monotonic, observer, crash_hook),
            jitter=lambda: 0.0,
            grace=math.inf,
        )
        while not stop_requested():
            chunks, ended = observer.chunks, records.exhausted
            worker.run_once()
            summary.position = records.position
            summary.seconds = time.monotonic() - began
            report(summary)
            busy = any(task.busy for task in worker.tasks)
            if ended and not busy and chunks == observer.chunks:
                break  # the last call has read nothing and completed nothing
        worker.stop()
    summary.seconds = time.monotonic() - began
    return summary


def replay_settings(settings: StreamSettings) -> StreamSettings:
    """The settings with a group that marks the state as one of a replay."""
    return replace(settings, group=f"replay of {settings.stream}")


@contextmanager
def _open_transport(plan: Plan, settings: StreamSettings) -> Iterator[FileTransport]:
    """The transport, with journal and outputs as of the last commit."""
    with ExitStack() as stack:
        journal = Journal(plan.checkpoint)
        stack.callback(journal.close)
        facts = run_facts(
            settings,
            plan.topic,
            {"dead letters kept": not isinstance(plan.dead_letters, NoOutput), **plan.more_facts},
        )
        before = read_saved_run(journal)
        if before.run is not None:
            check_unchanged(journal.name, before.run, facts)
        outputs = {
            settings.rankings_topic: plan.rankings,
            settings.dead_letter_topic: plan.dead_letters,
        }
        for topic, output in outputs.items():
            stack.callback(output.close)
            output.begin(_output_length(journal, before.outputs, topic), journal.name)
        transport = FileTransport(
            plan.partition,
            settings.state_topics[plan.topic],
            journal,
            outputs,
            RecordSequence(plan.sources, before.input),
            plan.timestamp,
        )
        if before.run is None:
            transport.first_notes = {"run": facts}
        yield transport


def _output_length(journal: Journal, lengths: Mapping[str, int], topic: str) -> int:
    if lengths and topic not in lengths:
        raise CorruptJournal(f"{journal.name} does not contain the length of its output")
    return lengths.get(topic, 0)


class _Observer:
    """Counts events for the summary."""

    def __init__(self, summary: Summary, resumed_at: InputMark | None) -> None:
        self._summary = summary
        self._resumed_at = resumed_at
        self._unpublished: deque[int] = deque()
        """Numbers of records of updated chunks whose rankings are not committed yet."""
        self.chunks = 0

    def __call__(self, event: events.Event) -> None:
        """Count an event."""
        summary = self._summary
        match event:
            case events.Restored():
                summary.chunk = event.chunk + event.behind
                # The model may be older: chunks that were published since are computed again.
                summary.next = event.offset if self._resumed_at is None else self._resumed_at.offset
                summary.resumed = summary.next
                if event.fallback is not None:
                    summary.warnings.append(f"an older model was used: {event.fallback}")
            case events.ReplayDiverged():
                summary.warnings.append(
                    f"the ranking of chunk {event.chunk} differs when computed again: another CPU?"
                )
            case events.RecordsRead():
                summary.unranked += event.good
                if summary.skipping:
                    summary.dead_letters.update(event.bad)
            case events.ChunkUpdated():
                self.chunks += 1
                if event.replayed:  # published by an earlier run
                    summary.unranked -= event.report.rows
                else:
                    self._unpublished.append(event.report.rows)
            case events.ChunkCommitted():
                summary.rankings += 1
                summary.chunk += 1
                summary.next = event.next_offset
                summary.unranked -= self._unpublished.popleft()
                if not summary.skipping:
                    summary.dead_letters.update(event.dead_letters)
            case _:
                pass


def run_facts(settings: StreamSettings, topic: str, more: Mapping[str, object]) -> dict[str, str]:
    """The facts that the output depends on, by name; `more` are facts beside the settings."""
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


def check_unchanged(checkpoint: str, before: Mapping[str, Any], now: Mapping[str, str]) -> None:
    """Raise `ReplayChanged` with every difference."""
    differences = [
        f"{name}: {_shown(before.get(name))} → {_shown(now.get(name))}"
        for name in dict.fromkeys([*now, *before])
        if before.get(name) != now.get(name) and (name in before or name not in ADDED_FACTS)
    ]
    if differences:
        raise ReplayChanged(checkpoint, differences)


def _shown(value: object) -> str:
    text = "absent" if value is None else str(value)
    return text if len(text) <= _MAX_WIDTH else f"{text[: _MAX_WIDTH - 1]}…"
