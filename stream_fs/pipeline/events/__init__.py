"""What happens in the pipeline: each event states how it is logged, counted and shown.

`instruments` declares the metrics, `status` the data of the status page; the events are in
`chunks`, `lifecycle` and `merge`. Observers call the methods of an event and know none of its
fields.
"""

from stream_fs.pipeline.events.chunks import (
    ChunkCommitted,
    ChunkUpdated,
    LagMeasured,
    RecordsRead,
    SnapshotCommitted,
    TransactionFailed,
)
from stream_fs.pipeline.events.event import Event, MergeEvent, Observer, PartitionEvent
from stream_fs.pipeline.events.lifecycle import (
    Fenced,
    GroupOffsetDiffers,
    PartitionReleased,
    PhaseChanged,
    ReplayDiverged,
    Restored,
    RestoreFailed,
)
from stream_fs.pipeline.events.merge import (
    MergeAcquired,
    MergedCommitted,
    MergeFailed,
    MergeReleased,
    SkipReason,
    SourceSkipped,
)
from stream_fs.pipeline.events.status import Phase

__all__ = [
    "ChunkCommitted",
    "ChunkUpdated",
    "Event",
    "Fenced",
    "GroupOffsetDiffers",
    "LagMeasured",
    "MergeAcquired",
    "MergeEvent",
    "MergeFailed",
    "MergeReleased",
    "MergedCommitted",
    "Observer",
    "PartitionEvent",
    "PartitionReleased",
    "Phase",
    "PhaseChanged",
    "RecordsRead",
    "ReplayDiverged",
    "RestoreFailed",
    "Restored",
    "SkipReason",
    "SnapshotCommitted",
    "SourceSkipped",
    "TransactionFailed",
]
