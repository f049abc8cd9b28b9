"""Members of a consumer group in the test process, which take turns under its control."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry

from stream_fs.kafka import ClientSettings, KafkaTransport
from stream_fs.pipeline import events
from stream_fs.pipeline.ports import Partition, Transport
from stream_fs.pipeline.transaction import Runtime
from stream_fs.pipeline.worker import Worker
from stream_fs.service.observability.metrics import MetricsObserver
from tests.integration.service.stream import Changes, Stream
from tests.support.topics import TIMEOUT_SECONDS

EventType = TypeVar("EventType")
MakeTransport = Callable[[ClientSettings, str, Callable[[str], str]], Transport]


class Member:
    """A worker, its events, and actions at the steps of its commits."""

    def __init__(
        self,
        stream: Stream,
        changes: Changes | None = None,
        *,
        transport: MakeTransport = KafkaTransport,
    ) -> None:
        configuration = stream.configuration(changes)
        self.stream = stream
        self.events: list[events.Event] = []
        self.registry = CollectorRegistry()
        self._metrics = MetricsObserver(self.registry, stream.name, time.time)
        self._planned: list[tuple[str, int, Callable[[], None]]] = []
        self.alive = True
        self.worker = Worker(
            configuration.stream.topics,
            configuration.stream_settings(),
            transport(
                configuration.kafka_settings(),
                configuration.stream.name,
                configuration.state_topics().__getitem__,
            ),
            Runtime(time.monotonic, self._observe, self._step),
            jitter=lambda: 0.01,
            grace=configuration.service.grace_seconds,
        )

    def at(self, step: str, times: int, action: Callable[[], None]) -> None:
        """Call an action at the given occurrence of a step, counted from 1."""
        self._planned.append((step, times, action))

    def until(self, condition: Callable[[], bool], what: str) -> None:
        together([self], condition, what)

    def completes(self, chunk: int) -> None:
        """Take turns until this chunk of the only partition is committed."""
        self.until(lambda: self.stream.reached[self.stream.only] >= chunk, f"chunk {chunk}")

    def runs(self) -> None:
        """Take turns until the only partition is restored and replayed."""
        self.until(lambda: self.phase() == "running", "running")

    def stop(self) -> None:
        """Shut down gracefully."""
        self.alive = False
        self.worker.stop()

    def kill(self) -> None:
        """End without a commit, a snapshot or an abort.

        Only the group is notified, so that others need not wait for the session timeout.
        """
        if self.alive:
            self.alive = False
            source = self.worker._input
            source._assignment = _NoAssignment()  # type: ignore[attr-defined]  # Kafka's has one
            source.close()

    def of(self, kind: type[EventType]) -> list[EventType]:
        return [event for event in self.events if isinstance(event, kind)]

    def phase(self) -> str | None:
        """The phase of the only task; None without one."""
        tasks = self.worker.tasks
        return tasks[0].phase if tasks else None

    @property
    def held(self) -> set[Partition]:
        return {task.partition for task in self.worker.tasks}

    @property
    def measured(self) -> set[Partition]:
        """The partitions that have metric series."""
        return {
            Partition(sample.labels["topic"], int(sample.labels["partition"]))
            for family in self.registry.collect()
            for sample in family.samples
            if "partition" in sample.labels
        }

    @property
    def merge_series(self) -> set[str]:
        """The names of the series of the merge."""
        return {
            sample.name
            for family in self.registry.collect()
            for sample in family.samples
            if "merge" in sample.name
        }

    def _observe(self, event: events.Event) -> None:
        self.events.append(event)
        self._metrics(event)
        reached = self.stream.reached
        if isinstance(event, events.ChunkCommitted):
            reached[event.partition] = max(reached[event.partition], event.ranking.chunk)
        elif isinstance(event, events.Restored):  # another member may have committed the last ones
            last = event.chunk + event.behind
            reached[event.partition] = max(reached[event.partition], last)

    def _step(self, step: str) -> None:
        for index, (wanted, times, action) in enumerate(self._planned):
            if wanted == step:
                self._planned[index] = (wanted, times - 1, action)
                if times == 1:
                    action()


class _NoAssignment:
    """The assignment of a killed worker."""

    def assigned(self, partitions: Sequence[Partition]) -> None:
        pass

    def revoked(self, partitions: Sequence[Partition]) -> None:
        pass

    def lost(self, partitions: Sequence[Partition]) -> None:
        pass


def together(members: Sequence[Member], condition: Callable[[], bool], what: str) -> None:
    """Let the members take turns until the condition holds."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            last_events: list[list[Any]] = [member.events[-5:] for member in members]
            raise TimeoutError(f"{what}; the last events: {last_events}")
        for member in members:
            member.worker.run_once()
