"""What the contract suite needs of a broker beside its transport."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from stream_fs.pipeline.ports import Partition, Transport


class Published(NamedTuple):
    """A committed record, as subscribers of its topic see it."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Backend(Protocol):
    """A broker for one test, or topics for one test on a shared broker."""

    def topic(self, partitions: int = 1) -> str:
        """Create an input topic and its state topic; returns the name of the input topic."""
        ...

    def grow(self, topic: str, partitions: int) -> None:
        """Increase the number of partitions of a topic."""
        ...

    def state_topic(self, topic: str) -> str:
        """The name of the state topic of an input topic."""
        ...

    def transport(self, group: str = "group") -> Transport:
        """A transport as of another process, in this group.

        Groups with the same name in two tests are different groups.
        """
        ...

    def produce(
        self,
        partition: Partition,
        value: bytes | None,
        key: bytes | None = None,
        headers: tuple[tuple[str, bytes | None], ...] = (),
    ) -> int:
        """Append a record to an input topic; returns its offset."""
        ...

    def delete_below(self, partition: Partition, offset: int) -> None:
        """Delete the records below an offset of an input or a state topic, as retention does."""
        ...

    def published(self, topic: str, partition: int = 0) -> list[Published]:
        """The committed records of a partition, up to the first open transaction."""
        ...
