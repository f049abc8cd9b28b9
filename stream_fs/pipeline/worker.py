"""One process: its membership of the group, and a task for every partition that it holds.

Single-threaded, but for transactions that are under way: `turn` gives a step to every task, and to
the merge where that is this member's duty, and polls when no task has more to do. What goes wrong
with a transaction is the task's affair, but for being fenced: then the task's memory is worthless,
and a new task takes over again, after a pause, as long as the partition is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stream_fs.errors import FencedError
from stream_fs.pipeline import events
from stream_fs.pipeline.fencing import FencingCounter
from stream_fs.pipeline.merge.ownership import MergeOwnership
from stream_fs.pipeline.ports import Partition, Transport
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.pipeline.task import PartitionTask
from stream_fs.pipeline.transaction import Runtime
from stream_fs.wire import RecordDecoder

STAY_SECONDS = 1.0
"""Of work without a poll: then there is one that takes hardly anything, for whoever does not poll
is expelled from the group after a while (max.poll.interval.ms), and hears of no rebalance."""
IDLE_WAIT, BUSY_WAIT = 0.5, 0.01
"""Seconds that a poll may wait when no task has anything to do, or some task waits itself."""


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
        self._settings = settings
        self._transport = transport
        self._runtime = runtime
        self._jitter = jitter
        self._grace = grace
        # One for all tasks: it remembers nothing but how producers write, and that takes room.
        self._decoder = RecordDecoder(settings.views, settings.record_format, settings.limits)
        self._joined = False
        self._assigned: set[Partition] = set()
        self._tasks: dict[Partition, PartitionTask] = {}
        self._fences: dict[Partition, FencingCounter] = {}
        self._again: dict[Partition, float] = {}
        self._polled = runtime.clock()
        self._merge = MergeOwnership(topics, settings, transport, runtime, jitter)
        self._input = transport.input(topics, self)

    @property
    def tasks(self) -> tuple[PartitionTask, ...]:
        """The tasks at work."""
        return tuple(self._tasks.values())

    @property
    def joined(self) -> bool:
        """Whether the group has told us our share, be it empty: a spare member is ready, too."""
        return self._joined

    @property
    def ready(self) -> bool:
        """Whether every assigned partition is restored."""
        tasks = self._tasks.copy()  # other threads ask, while the loop takes and gives up
        return self._joined and all(
            partition in tasks and tasks[partition].phase in ("running", "replaying")
            for partition in tuple(self._assigned)
        )

    @property
    def restore_error(self) -> str | None:
        """Why a partition is not restored yet, as far as that is known."""
        found = ((task.partition, task.restore_error) for task in self.tasks)
        return next((f"{partition}: {why}" for partition, why in found if why is not None), None)

    @property
    def connection_error(self) -> str | None:
        """Why there is no connection; None when there is one."""
        return self._input.connection_error()

    def lags(self) -> dict[Partition, int]:
        """The lag of every restored partition, as far as it is known without asking the broker."""
        known = {partition: task.lag for partition, task in self._tasks.items()}
        return {partition: lag for partition, lag in known.items() if lag is not None}

    def run_once(self) -> None:
        """Let every task take a step; when none has more to do, poll, and hand out the messages.

        So a poll's messages are chunks before the next poll, and memory does not grow with the lag;
        but for a message now and then where that takes long, see `STAY_SECONDS`.
        """
        more = self._advance_all()
        self._merge.advance()
        if not more:
            busy = self._merge.busy or any(task.busy for task in self._tasks.values())
            wait = BUSY_WAIT if busy or self._again else IDLE_WAIT
            self._poll(wait)
        self._take_again()

    def stop(self) -> None:
        """Finish what is due within the grace time, and leave the group."""
        self._input.close()
        self.lost(tuple(self._assigned))

    def assigned(self, partitions: Sequence[Partition]) -> None:
        """Begin to take over; nothing is read here, so that the rebalance is quick."""
        self._joined = True
        for partition in partitions:
            self._assigned.add(partition)
            self._begin(partition)
        self._merge.assigned(partitions)

    def revoked(self, partitions: Sequence[Partition]) -> None:
        """Finish, snapshot included, so that the next owner has nothing to replay."""
        deadline = self._runtime.clock() + self._grace
        for partition in partitions:
            task = self._tasks.get(partition)
            if task is not None:
                try:
                    task.finish(deadline)
                except FencedError as error:
                    self._runtime.observe(
                        events.Fenced(
                            partition, str(error), final=True, outcome_unknown=error.outcome_unknown
                        )
                    )
        self.lost(partitions)

    def lost(self, partitions: Sequence[Partition]) -> None:
        """Forget: somebody else may be at work on them already."""
        self._merge.lost(partitions)
        for partition in partitions:
            self._assigned.discard(partition)
            self._again.pop(partition, None)
            self._fences.pop(partition, None)
            task = self._tasks.pop(partition, None)
            if task is not None:
                task.close()
            self._runtime.observe(events.PartitionReleased(partition))

    def _poll(self, wait: float, max_records: int | None = None) -> None:
        for partition, messages in self._input.poll(wait, max_records).items():
            task = self._tasks.get(partition)
            if task is not None:
                task.receive(messages)
        self._polled = self._runtime.clock()

    def _advance_all(self) -> bool:
        more = False
        for partition in list(self._tasks):
            if self._runtime.clock() - self._polled > STAY_SECONDS:
                self._poll(0.0, max_records=1)
            task = self._tasks.get(partition)
            if task is None:  # given up in that poll
                continue
            try:
                more |= task.advance()
            except FencedError as error:
                self._fenced(partition, error)
        return more

    def _begin(self, partition: Partition) -> None:
        self._tasks[partition] = PartitionTask(
            partition, self._settings, self._decoder, self._transport, self._input, self._runtime
        )

    def _fenced(self, partition: Partition, error: FencedError) -> None:
        """Drop the task; after a pause, take over again, unless this happens again and again."""
        self._input.pause(partition)
        self._tasks.pop(partition).close()
        fences = self._fences.setdefault(partition, FencingCounter(self._jitter))
        final = fences.note(self._runtime.clock(), error)
        self._runtime.observe(
            events.Fenced(partition, str(error), final=final, outcome_unknown=error.outcome_unknown)
        )
        if final:
            raise fences.refusal(str(partition), error)
        self._again[partition] = fences.again()

    def _take_again(self) -> None:
        now = self._runtime.clock()
        for partition, due in list(self._again.items()):
            if due <= now:
                del self._again[partition]
                self._begin(partition)
