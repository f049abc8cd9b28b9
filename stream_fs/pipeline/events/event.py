"""The methods that observers call, with the defaults of an event that changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from stream_fs.pipeline.events.instruments import LogLine, Sample
from stream_fs.pipeline.events.status import MergeStatus, PartitionStatus, StatusContext
from stream_fs.pipeline.ports import Partition


class Event:
    """Something that happened to a partition or to the merge."""

    __slots__ = ()

    released: ClassVar[bool] = False
    """Whether the partition or the merge left this process: its series and status are removed."""

    def log(self) -> LogLine | None:
        """The line of the log, if there is one."""
        return None

    def samples(self, now: float) -> Iterable[Sample]:
        """Changes of metrics; `now` in seconds since 1970."""
        return ()


@dataclass(frozen=True, slots=True)
class PartitionEvent(Event):
    """An event of one input partition; its metrics have the labels of the partition."""

    partition: Partition

    def update(self, status: PartitionStatus, context: StatusContext) -> PartitionStatus:
        """The status of the partition after the event."""
        return status

    def line(self, level: int, text: str, **fields: Any) -> LogLine:
        """A line with the partition before the other fields."""
        place = {"topic": self.partition.topic, "partition": self.partition.number}
        return LogLine(level, text, {**place, **fields})


class MergeEvent(Event):
    """An event of the merge; its metrics have the label of the stream."""

    __slots__ = ()

    def update(self, status: MergeStatus | None, context: StatusContext) -> MergeStatus | None:
        """The status of the merge after the event; None before the first merged ranking."""
        return status


Observer: TypeAlias = Callable[[Event], None]
