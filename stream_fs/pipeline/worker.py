"""One process: its membership of the consumer group, and a task for every assigned partition.

Single-threaded except for transactions in flight. `run_once` lets every task take a step, and the
merge where this member owns it, and polls when no task has more to do. Tasks handle failures of
their transactions, except for fencing: the memory of a fenced task is worthless, and a new task
acquires the partition again after a delay, as long as the group assigns it to this member.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stream_fs.errors import FencedError
from stream_fs.pipeline import events
from stream_fs.pipeline.fencing import FencingCounter
from stream_fs.pipeline.merge.ownership import MergeOwnership
from stream_fs.pipeline.partition.task import PartitionTask
from stream_fs.pipeline.ports import Partition, Transport
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.pipeline.transaction import Runtime
from stream_fs.wire import RecordDecoder

MAX_SECONDS_WITHOUT_POLL = 1.0
"""Seconds of work between two polls. After that, a poll for hardly any message follows: a member
that does not poll is expelled from the group (max.poll.interval.ms), and learns of no rebalance."""
IDLE_WAIT, BUSY_WAIT = 0.5, 0.01
"""Seconds that a poll may wait: when no task has work, and when some task waits itself."""


class Worker:
    """The tasks of one process; also the `Assignment` that its input reports to."""

    def __init__(
        self,
        topics: Sequence[str],
        settings: StreamSettings,
        transport: Transport,
        runtime: Runtime,
        *,
        jitter: Callable[[], float],
        grace: float,
    ) -> None:
        """`grace` limits the seconds that a graceful shutdown takes."""
        self._settings = settings
        self._transport = transport
        self._runtime = runtime
        self._jitter = jitter
        self._grace = grace
        # Shared by all tasks: it caches only how producers write, and the cache is large.
        self._decoder = RecordDecoder(settings.views, settings.record_format, settings.limits)
        self._joined = False
        self._assigned: set[Partition] = set()
        self._tasks: dict[Partition, PartitionTask] = {}
        self._fencing: dict[Partition, FencingCounter] = {}
        self._polled_at = runtime.clock()
        self._merge = MergeOwnership(topics, settings, transport, runtime, jitter)
        self._input = transport.input(topics, self)

    @property
    def tasks(self) -> tuple[PartitionTask, ...]:
        """The tasks of the partitions that are not fenced."""
        return tuple(self._tasks.values())

    @property
    def joined(self) -> bool:
        """Whether the group has assigned partitions, or none: a spare member is ready, too."""
        return self._joined

    @property
    def ready(self) -> bool:
        """Whether every assigned partition is restored."""
        tasks = self._tasks.copy()  # other threads read this while the loop changes it
        return self._joined and all(
            partition in tasks and tasks[partition].phase in ("running", "replaying")
            for partition in tuple(self._assigned)
        )

    @property
    def restore_error(self) -> str | None:
        """Why a partition is not restored yet, if known."""
        found = ((task.partition, task.restore_error) for task in self.tasks)
        return next((f"{partition}: {why}" for partition, why in found if why is not None), None)

    @property
    def connection_error(self) -> str | None:
        """Why there is no connection to the broker; None if there is one."""
        return self._input.connection_error()

    def lags(self) -> dict[Partition, int]:
        """The lag of every restored partition, as far as known without a request to the broker."""
        known = {partition: task.lag for partition, task in self._tasks.items()}
        return {partition: lag for partition, lag in known.items() if lag is not None}

    def run_once(self) -> None:
        """Let every task take a step; when none has more to do, poll and distribute the messages.

        So the messages of a poll are chunks before the next poll, and memory does not grow with the
        lag, except for the single messages polled after `MAX_SECONDS_WITHOUT_POLL`.
        """
        more = self._advance_all()
        self._merge.advance()
        if not more:
            busy = self._merge.busy or any(task.busy for task in self._tasks.values())
            waiting = any(fencing.waiting for fencing in self._fencing.values())
            self._poll(BUSY_WAIT if busy or waiting else IDLE_WAIT)
        self._acquire_again()

    def stop(self) -> None:
        """Shut down gracefully within the grace time, and leave the group."""
        self._input.close()
        self.lost(tuple(self._assigned))

    def assigned(self, partitions: Sequence[Partition]) -> None:
        """Start a task for each; nothing is read here, so that the rebalance is quick."""
        self._joined = True
        for partition in partitions:
            self._assigned.add(partition)
            self._start(partition)
        self._merge.assigned(partitions)

    def revoked(self, partitions: Sequence[Partition]) -> None:
        """Finish commits and save snapshots, so that the next owner has nothing to replay."""
        deadline = self._runtime.clock() + self._grace
        for partition in partitions:
            task = self._tasks.get(partition)
            if task is not None:
                try:
                    task.shut_down(deadline)
                except FencedError as error:
                    self._observe_fencing(partition, error, final=True)
        self.lost(partitions)

    def lost(self, partitions: Sequence[Partition]) -> None:
        """Discard the tasks: another member may own the partitions already."""
        self._merge.lost(partitions)
        for partition in partitions:
            self._assigned.discard(partition)
            self._fencing.pop(partition, None)
            task = self._tasks.pop(partition, None)
            if task is not None:
                task.close()
            self._runtime.observe(events.PartitionReleased(partition))

    def _poll(self, timeout: float, most: int | None = None) -> None:
        for partition, messages in self._input.poll(timeout, most).items():
            task = self._tasks.get(partition)
            if task is not None:
                task.receive(messages)
        self._polled_at = self._runtime.clock()

    def _advance_all(self) -> bool:
        """Let every task take a step; whether any has more to do at once."""
        more = False
        for partition in list(self._tasks):
            if self._runtime.clock() - self._polled_at > MAX_SECONDS_WITHOUT_POLL:
                self._poll(0.0, most=1)
            task = self._tasks.get(partition)
            if task is None:  # revoked in that poll
                continue
            try:
                more |= task.advance()
            except FencedError as error:
                self._fenced(partition, error)
        return more

    def _start(self, partition: Partition) -> None:
        self._tasks[partition] = PartitionTask(
            partition, self._settings, self._decoder, self._transport, self._input, self._runtime
        )

    def _fenced(self, partition: Partition, error: FencedError) -> None:
        """Discard the task; acquire the partition again after a delay, or fail after too many."""
        self._input.pause(partition)
        self._tasks.pop(partition).close()
        fencing = self._fencing.setdefault(partition, FencingCounter(str(partition), self._jitter))
        ownership_error = fencing.note(self._runtime.clock(), error)
        self._observe_fencing(partition, error, final=ownership_error is not None)
        if ownership_error is not None:
            raise ownership_error

    def _observe_fencing(self, partition: Partition, error: FencedError, *, final: bool) -> None:
        self._runtime.observe(
            events.Fenced(partition, str(error), final=final, outcome_unknown=error.outcome_unknown)
        )

    def _acquire_again(self) -> None:
        now = self._runtime.clock()
        for partition, fencing in self._fencing.items():
            if fencing.retry_due(now):
                self._start(partition)
