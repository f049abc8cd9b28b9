"""The lifecycle of one input partition, as a state machine.

    Acquiring ─> Restoring ─> (Replaying) ─> Idle ─> Committing ─> (Retrying) ─> Idle
        ^─ Backoff <─┘

| state (phase)             | event                                   | next               |
|---------------------------|-----------------------------------------|--------------------|
| Acquiring (taking_over)   | the transactional id is acquired        | Restoring          |
|                           | retriable error                         | Backoff            |
| Restoring (restoring)     | restored, with committed chunks behind  | Replaying          |
|                           | restored, with none                     | Idle               |
|                           | retriable error                         | Backoff            |
| Backoff (as before)       | the delay is over                       | Acquiring          |
| Replaying (replaying)     | the last committed chunk is updated     | Idle               |
| Idle (running)            | a batch is complete                     | Committing         |
| Committing (running)      | committed                               | Idle               |
|                           | an attempt failed                       | Retrying           |
| Retrying (publishing)     | committed                               | Idle               |
| any but Idle              | an error leaves `advance`               | Failed (as before) |
| any                       | `close`                                 | Released           |

Idle is kept after an error: nothing is in flight, and a snapshot can still be committed. In another
state a transaction may be committed that is not installed yet; a snapshot of the model before it
would take the partition back behind its published rankings, so Failed commits nothing. After a
`FencedError` the owner of the task starts a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from stream_fs.pipeline import events
from stream_fs.pipeline.partition.recovery import (
    Acquiring,
    Attempts,
    Backoff,
    Replaying,
    Restoring,
)
from stream_fs.pipeline.partition.running import Committing, Idle, Retrying
from stream_fs.pipeline.partition.state import PartitionContext, PartitionState
from stream_fs.pipeline.ports import Input, Partition, Transport
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.pipeline.transaction import Runtime, TransactionRunner, backoff_delays
from stream_fs.records import Message
from stream_fs.wire.records.decoder import RecordDecoder


class _Ended(PartitionState):
    """Nothing more is done."""

    def __init__(self, phase: events.Phase) -> None:
        self.phase = phase

    @property
    def busy(self) -> bool:
        """Whether there is work: there is none."""
        return False

    def advance(self) -> tuple[PartitionState, bool]:
        """Stay in this state."""
        return self, False


class Failed(_Ended):
    """An error has left `advance`."""


class Released(_Ended):
    """The task is closed."""


_TRANSITIONS: Final[Mapping[type[PartitionState], frozenset[type[PartitionState]]]] = {
    Acquiring: frozenset({Restoring, Backoff, Failed, Released}),
    Restoring: frozenset({Replaying, Idle, Backoff, Failed, Released}),
    Backoff: frozenset({Acquiring, Failed, Released}),
    Replaying: frozenset({Idle, Failed, Released}),
    Idle: frozenset({Committing, Released}),
    Committing: frozenset({Idle, Retrying, Failed, Released}),
    Retrying: frozenset({Idle, Failed, Released}),
    Failed: frozenset({Released}),
    Released: frozenset(),
}


class PartitionTask:
    """Holds the state of one partition, and lets it advance."""

    def __init__(
        self,
        partition: Partition,
        settings: StreamSettings,
        decoder: RecordDecoder,
        transport: Transport,
        source: Input,
        runtime: Runtime,
    ) -> None:
        publisher = transport.publisher(partition)
        self.partition = partition
        self._runtime = runtime
        self._transactions = TransactionRunner(publisher, runtime)
        context = PartitionContext(
            partition, settings, decoder, transport, source, runtime, publisher, self._transactions
        )
        self._restore_error: str | None = None
        self._state: PartitionState = Acquiring(
            context, Attempts(runtime.clock(), backoff_delays())
        )
        runtime.observe(events.PhaseChanged(partition, self.phase))

    @property
    def phase(self) -> events.Phase:
        """The name of the state, for observers."""
        return self._state.phase

    @property
    def restore_error(self) -> str | None:
        """The error of the last attempt to restore the model; None once it is restored."""
        return self._restore_error

    @property
    def lag(self) -> int | None:
        """Records that can be read and were not received, see `Input.unread`; None if unknown."""
        return self._state.lag

    @property
    def busy(self) -> bool:
        """Whether `advance` has work now, or soon."""
        return self._state.busy

    def receive(self, messages: Sequence[Message]) -> None:
        """Accept messages that follow those received before."""
        self._state.receive(messages)

    def advance(self) -> bool:
        """Take one step; whether there is more to do at once."""
        before = self._state
        before.begin_turn()
        more = self._apply(before.advance)
        if isinstance(before, Idle) and isinstance(self._state, Committing):
            # The commit begins in this turn: its job runs while the loop serves other partitions.
            more = self._apply(self._state.advance)
        return more

    def shut_down(self, deadline: float) -> None:
        """Finish the commit in flight, and commit a snapshot, as far as time allows.

        A start that is being recorded is left to the next owner, with the first chunk, and so are
        lingering chunks.
        """
        while isinstance(self._state, Committing) and self._state.batch.start_recorded:
            left = deadline - self._runtime.clock()
            if left <= 0:
                return
            self._transactions.wait_in_flight(left)
            self._apply(self._state.step)
        if isinstance(self._state, Idle):
            self._state.shut_down(deadline)

    def close(self) -> None:
        """Release the partition without waiting; what is not committed is discarded."""
        self._state.close()
        self._enter(Released(self.phase))
        self._transactions.release()

    def _apply(self, step: Callable[[], tuple[PartitionState, bool]]) -> bool:
        try:
            following, more = step()
        except BaseException:
            if not isinstance(self._state, Idle):
                self._enter(Failed(self.phase))
            raise
        if following is not self._state:
            self._enter(following)
        return more

    def _enter(self, state: PartitionState) -> None:
        before = self._state
        if type(state) not in _TRANSITIONS[type(before)]:
            raise RuntimeError(
                f"{self.partition} cannot go from {type(before).__name__} to {type(state).__name__}"
            )
        self._state = state
        if isinstance(state, Backoff):
            self._restore_error = state.error
        elif isinstance(state, Replaying | Idle):
            self._restore_error = None
        if state.phase != before.phase:
            self._runtime.observe(events.PhaseChanged(self.partition, state.phase))
