"""Events in the lifecycle of a partition's task: phases, restore, fencing, release."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Final, get_args

from stream_fs.pipeline.events.event import PartitionEvent
from stream_fs.pipeline.events.instruments import (
    PHASE,
    REPLAY_DIVERGENCES,
    RESTORE_FAILURES,
    RESTORE_SECONDS,
    RESTORES,
    TRANSACTION_FAILURES,
    LogLine,
    Sample,
)
from stream_fs.pipeline.events.status import PartitionStatus, Phase, SnapshotInfo, StatusContext

_PHASES: Final[tuple[Phase, ...]] = get_args(Phase)


@dataclass(frozen=True, slots=True)
class PhaseChanged(PartitionEvent):
    """The task entered another phase."""

    phase: Phase

    def log(self) -> LogLine:
        return self.line(logging.INFO, f"task is {self.phase.replace('_', ' ')}")

    def samples(self, now: float) -> Iterable[Sample]:
        return [PHASE.set(phase == self.phase, phase) for phase in _PHASES]

    def update(self, status: PartitionStatus, context: StatusContext) -> PartitionStatus:
        # A new task has an empty chunk; the last ranking stays published. A fenced partition is
        # shown as such until it is acquired again.
        if self.phase == "taking_over":
            return replace(status, phase=self.phase, chunk=None, behind=0)
        error = None if status.fenced else status.error
        return replace(status, phase=self.phase, fenced=False, error=error)


@dataclass(frozen=True, slots=True)
class Restored(PartitionEvent):
    """The model is restored as of `chunk`, with `behind` chunks to replay; chunk 0 is a new model.

    `fallback` states why the newest snapshot could not be used, if the one before it was. A
    `migrated` state is of a release whose keys did not name an owner.
    """

    chunk: int
    behind: int
    offset: int
    seconds: float
    fallback: str | None
    migrated: bool = False

    def log(self) -> LogLine:
        level = logging.INFO if self.fallback is None else logging.WARNING
        known = {"migrated": True} if self.migrated else {}
        reason = {} if self.fallback is None else {"fallback": self.fallback}
        return self.line(
            level,
            "model restored" if self.chunk else "new model",
            chunk=self.chunk,
            offset=self.offset,
            behind=self.behind,
            seconds=self.seconds,
            **known,
            **reason,
        )

    def samples(self, now: float) -> Iterable[Sample]:
        outcome = "restored" if self.chunk else "new"
        if self.fallback is not None:
            outcome = "fallback"
        yield RESTORES.add(1, outcome)
        yield RESTORE_SECONDS.observe(self.seconds)

    def update(self, status: PartitionStatus, context: StatusContext) -> PartitionStatus:
        # The sequence is that of the published ranking, which replay has yet to reach.
        return replace(
            status,
            error=None,
            sequence=self.chunk + self.behind,
            behind=self.behind,
            snapshot=SnapshotInfo(self.chunk, None) if self.chunk else None,
        )


@dataclass(frozen=True, slots=True)
class RestoreFailed(PartitionEvent):
    """The state could not be read; the attempt is repeated."""

    error: str

    def log(self) -> LogLine:
        return self.line(logging.WARNING, "could not read the state, retrying", error=self.error)

    def samples(self, now: float) -> Iterable[Sample]:
        return (RESTORE_FAILURES.add(1),)

    def update(self, status: PartitionStatus, context: StatusContext) -> PartitionStatus:
        return replace(status, error=self.error)


@dataclass(frozen=True, slots=True)
class GroupOffsetDiffers(PartitionEvent):
    """The committed offset of the group is not that of the state; the state decides."""

    group: int
    state: int

    def log(self) -> LogLine:
        text = "group offset differs from the saved state; continuing from the saved state"
        return self.line(logging.WARNING, text, offset=self.state, group_offset=self.group)


@dataclass(frozen=True, slots=True)
class ReplayDiverged(PartitionEvent):
    """A replayed ranking differs from the published one (another CPU, BLAS or output)."""

    chunk: int

    def log(self) -> LogLine:
        text = "replayed ranking differs from the published one"
        return self.line(logging.WARNING, text, chunk=self.chunk)

    def samples(self, now: float) -> Iterable[Sample]:
        return (REPLAY_DIVERGENCES.add(1),)


@dataclass(frozen=True, slots=True)
class Fenced(PartitionEvent):
    """The transactional producer was fenced; unless `final`, the partition is acquired again.

    If `outcome_unknown`, there may be no other owner: the outcome of a commit is unknown, or the
    transaction timed out.
    """

    error: str
    final: bool
    outcome_unknown: bool = False

    def log(self) -> LogLine:
        text = "taken over by another owner"
        if self.outcome_unknown:
            text = "outcome of the transaction unknown, acquiring the partition again"
        return self.line(logging.WARNING, text, error=self.error, final=self.final)

    def samples(self, now: float) -> Iterable[Sample]:
        return (TRANSACTION_FAILURES.add(1, "undecided" if self.outcome_unknown else "fenced"),)

    def update(self, status: PartitionStatus, context: StatusContext) -> PartitionStatus:
        return replace(status, fenced=not self.outcome_unknown, error=self.error)


@dataclass(frozen=True, slots=True)
class PartitionReleased(PartitionEvent):
    """The partition was revoked from this process, or released by it."""

    released: ClassVar[bool] = True

    def log(self) -> LogLine:
        return self.line(logging.INFO, "partition released")
