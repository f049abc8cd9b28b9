"""What the contract suite needs of a broker beside its transport: the outside world's part."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from stream_fs.pipeline.ports import Partition, Transport


class Published(NamedTuple):
    """A committed record, as a subscriber of its topic sees it."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Backend(Protocol):
    """A broker of its own for one test, or topics of its own on a shared one."""

    def topic(self, partitions: int = 1) -> str:
        """A new, empty input topic, and its state topic with as many partitions; its name."""
        ...

    def grow(self, topic: str, partitions: int) -> None:
        """Add partitions to a topic, up to so many."""
        ...

    def state_topic(self, topic: str) -> str:
        """The name of the state topic of an input topic."""
        ...

    def transport(self, group: str = "group") -> Transport:
        """Another process's view of the broker, as a member of this group.

        Groups of the same name in two tests are two groups.
        """
        ...

    def produce(
        self,
        partition: Partition,
        value: bytes | None,
        key: bytes | None = None,
        headers: tuple[tuple[str, bytes | None], ...] = (),
    ) -> int:
        """Append a record to an input topic; the offset that it got."""
        ...

    def delete_below(self, partition: Partition, offset: int) -> None:
        """Let retention delete the records below an offset, in an input or a state topic."""
        ...

    def published(self, topic: str, partition: int = 0) -> list[Published]:
        """All committed records of a partition now, up to the first open transaction."""
        ...
