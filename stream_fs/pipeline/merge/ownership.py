"""Which member merges: the one that the first partition of the stream is assigned to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from stream_fs.errors import FencedError
from stream_fs.pipeline import events
from stream_fs.pipeline.fencing import FencingCounter
from stream_fs.pipeline.merge.loop import MergeLoop
from stream_fs.pipeline.ports import Partition, Transport
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.pipeline.transaction import Runtime


class MergeOwnership:
    """Runs a merge loop while this member owns the merge and merged rankings are configured."""

    def __init__(
        self,
        topics: Sequence[str],
        settings: StreamSettings,
        transport: Transport,
        runtime: Runtime,
        jitter: Callable[[], float],
    ) -> None:
        self._topics = topics
        self._settings = settings
        self._transport = transport
        self._runtime = runtime
        self._jitter = jitter
        self._loop: MergeLoop | None = None
        self._fencing = self._new_counter()

    @property
    def busy(self) -> bool:
        """Whether `advance` has work now, or soon."""
        return self._fencing.waiting or (self._loop is not None and self._loop.busy)

    def assigned(self, partitions: Sequence[Partition]) -> None:
        """Start a loop, if the first partition is among these.

        Its task need not be restored: the restore may have to wait for a transaction that the last
        owner of the merge left open, and acquiring the merge ends it.
        """
        if self._home in partitions:
            self._start()

    def lost(self, partitions: Sequence[Partition]) -> None:
        """Release the merge, if the first partition is among these."""
        if self._home in partitions and (self._loop is not None or self._fencing.waiting):
            self._close()
            self._fencing = self._new_counter()
            self._runtime.observe(events.MergeReleased())

    def advance(self) -> None:
        """Take one step; acquire a fenced merge again after a delay, or fail after too many."""
        if self._fencing.retry_due(self._runtime.clock()):
            self._start()
        if self._loop is None:
            return
        try:
            self._loop.advance()
        except FencedError as error:
            self._close()
            ownership_error = self._fencing.note(self._runtime.clock(), error)
            outcome: Literal["fenced", "undecided"] = (
                "undecided" if error.outcome_unknown else "fenced"
            )
            self._runtime.observe(events.MergeFailed(outcome, str(error)))
            if ownership_error is not None:
                raise ownership_error from error

    @property
    def _home(self) -> Partition:
        return Partition(self._topics[0], 0)

    def _new_counter(self) -> FencingCounter:
        return FencingCounter("the merge", self._jitter)

    def _start(self) -> None:
        every = self._settings.merge_every
        if every is not None:
            self._close()
            self._loop = MergeLoop(
                self._topics, self._settings, self._transport, self._runtime, every
            )

    def _close(self) -> None:
        if self._loop is not None:
            self._loop.close()
        self._loop = None
