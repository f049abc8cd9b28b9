"""Whether the merge is this member's duty: it comes and goes with the stream's first partition."""

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
    """The merge, as long as it is ours; nothing at all where no merged rankings are wanted."""

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
        self._merging: MergeLoop | None = None
        self._fences = FencingCounter(jitter)
        self._again: float | None = None

    @property
    def busy(self) -> bool:
        """Whether `advance` has something to do now, or soon."""
        return self._again is not None or (self._merging is not None and self._merging.busy)

    def assigned(self, partitions: Sequence[Partition]) -> None:
        """Begin, if the first partition is among these.

        At once, and not when its task is restored: that may have to wait for a transaction which
        the last owner of the merge left open, and taking over ends it.
        """
        if self._home in partitions:
            self._begin()

    def lost(self, partitions: Sequence[Partition]) -> None:
        """Let go, if the first partition is among these."""
        if self._home in partitions and (self._merging is not None or self._again is not None):
            self._drop()
            self._again = None
            self._fences = FencingCounter(self._jitter)
            self._runtime.observe(events.MergeReleased())

    def advance(self) -> None:
        """One step; a fenced merge is taken over again after a pause, but not for ever."""
        if self._again is not None and self._again <= self._runtime.clock():
            self._again = None
            self._begin()
        if self._merging is None:
            return
        try:
            self._merging.advance()
        except FencedError as error:
            self._drop()
            final = self._fences.note(self._runtime.clock(), error)
            outcome: Literal["fenced", "undecided"] = (
                "undecided" if error.outcome_unknown else "fenced"
            )
            self._runtime.observe(events.MergeFailed(outcome, str(error)))
            if final:
                raise self._fences.refusal("the merge", error) from error
            self._again = self._fences.again()

    @property
    def _home(self) -> Partition:
        return Partition(self._topics[0], 0)

    def _begin(self) -> None:
        every = self._settings.merge_every
        if every is not None:
            self._drop()
            self._merging = MergeLoop(
                self._topics, self._settings, self._transport, self._runtime, every
            )

    def _drop(self) -> None:
        if self._merging is not None:
            self._merging.close()
        self._merging = None
