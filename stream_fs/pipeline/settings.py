"""Settings of the pipeline of one stream: plain values, already validated.

Defaults are those of the configuration, `service.configuration.sections`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from stream_fs.checkpoint import Owner, StateKeys
from stream_fs.pipeline.ports import Partition
from stream_fs.selector import Params
from stream_fs.wire.declared import DeclaredView, Limits
from stream_fs.wire.rankings.codec import RankingFormat
from stream_fs.wire.records.formats import RecordFormat

Policy = Literal["dead_letter", "skip", "fail"]
InputStart = Literal["earliest", "latest"]


class ChunkPolicy(NamedTuple):
    """How chunks are formed: the good records of a chunk and of the first one, and the span.

    `max_span` (milliseconds) closes a chunk early, before the record that would spread its
    timestamps further than that. The first chunk is formed by its count alone.
    """

    records: int
    first: int
    max_span: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterSettings:
    """How bad records are handled.

    `dead_letter` publishes them, `skip` counts them, `fail` stops at the first. Under
    `dead_letter` too many of them stop the service: more than `max_ratio` of the records of the
    open chunk (and at least `tolerated`), or more than `max_open`. A dead letter above `largest`
    bytes is shortened, and so are those of a chunk behind the first `max_open_bytes`: large bad
    records alone do not stop the service.
    """

    policy: Policy
    max_ratio: float
    tolerated: int
    max_open: int
    max_open_bytes: int
    largest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """One stream: its input, its chunks, and its outputs."""

    stream: str
    group: str
    """The consumer group; together with the stream, the owner of the state."""
    params: Params
    views: tuple[DeclaredView, ...]
    rankings_topic: str
    dead_letter_topic: str
    state_topics: Mapping[str, str]
    """By input topic."""
    record_format: RecordFormat
    limits: Limits
    chunk_records: int
    chunk_max_span: int | None
    """Milliseconds."""
    checkpoint_every: int
    """Chunks between snapshots."""
    part_bytes: int
    """Largest part and largest manifest of a snapshot."""
    output_top: int | float | None
    """Features per view in a ranking: a count, a share, or all."""
    output_format: RankingFormat
    linger: float
    """Seconds that a ranking may wait for later ones to share a transaction, in a backlog."""
    dead_letters: DeadLetterSettings
    merge_every: float | None
    """Seconds between merged rankings, at least; None publishes none."""
    start: InputStart
    """Where a partition without a state starts."""

    @property
    def owner(self) -> Owner:
        """The owner of the stream's state."""
        return Owner(self.stream, self.group)

    def keys(self, partition: Partition) -> StateKeys:
        """The keys of a partition's state."""
        return StateKeys(self.owner, *partition)

    def origin(self, partition: Partition) -> str:
        """The name from which a partition's model derives its random signs."""
        return f"{self.stream}/{partition}"

    @property
    def chunk_policy(self) -> ChunkPolicy:
        """How the stream is divided into chunks."""
        first = max(self.chunk_records, self.params.first_chunk_rows)
        return ChunkPolicy(self.chunk_records, first, self.chunk_max_span)
