"""From what happens in the pipeline to lines of the log, each at the level it deserves.

error      nothing here: an error that ends the process is told by whoever ends it
warning    somebody may want to look: a failed transaction, dead letters, a fallback
info       the life of a partition, and every published chunk
debug      the computation
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final, assert_never

from stream_fs.pipeline import events
from stream_fs.pipeline.ports import Partition
from stream_fs.service.observability.logging import ROOT

_LOGGER: Final = logging.getLogger(ROOT)


def log_event(event: events.Event) -> None:
    """An observer of the pipeline: one line, but none for records that were merely read."""
    match event:
        case events.RecordsRead():
            pass
        case events.PhaseChanged():
            _say(logging.INFO, f"task is {event.phase.replace('_', ' ')}", event.partition)
        case events.ChunkUpdated():
            _updated(event)
        case events.ChunkCommitted():
            _committed(event)
        case events.SnapshotCommitted():
            size = {"snapshot_bytes": event.snapshot_bytes}
            _say(logging.INFO, "snapshot committed", event.partition, event.chunk, more=size)
        case events.TransactionFailed():
            text = f"transaction {event.outcome.replace('_', ' ')}"
            _say(logging.WARNING, text, event.partition, more={"error": event.error})
        case events.Fenced():
            text = (
                "to be taken over anew" if event.outcome_unknown else "taken over by another owner"
            )
            more = {"error": event.error, "final": event.final}
            _say(logging.WARNING, text, event.partition, more=more)
        case events.PartitionReleased():
            _say(logging.INFO, "partition released", event.partition)
        case events.Restored():
            _restored(event)
        case events.RestoreFailed():
            text = "the state could not be read; trying again"
            _say(logging.WARNING, text, event.partition, more={"error": event.error})
        case events.GroupOffsetDiffers():
            _say(
                logging.WARNING,
                "the group's offset differs from the state, which decides",
                event.partition,
                offset=event.state,
                more={"group_offset": event.group},
            )
        case events.ReplayDiverged():
            text = "replayed ranking differs from the published one"
            _say(logging.WARNING, text, event.partition, event.chunk)
        case _:
            _merge(event)


def _merge(event: events.MergeEvent) -> None:
    match event:
        case events.MergeAcquired():
            _tell(logging.INFO, "merge taken over", {"sequence": event.sequence})
        case events.MergedCommitted():
            told = {
                "sequence": event.sequence,
                "sources": len(event.parts),
                "partitions": event.partitions,
                "seconds": event.seconds,
            }
            _tell(logging.INFO, "merged ranking committed", told)
        case events.SourceSkipped():
            text = "partition cannot be merged"
            more = {"reason": event.reason, "detail": event.detail}
            _say(logging.WARNING, text, event.partition, more=more)
        case events.MergeFailed():
            _tell(logging.WARNING, f"merge {event.outcome}", {"error": event.error})
        case events.MergeReleased():
            _tell(logging.INFO, "merge released", {})
        case _:
            assert_never(event)


def _updated(event: events.ChunkUpdated) -> None:
    report = event.report
    fit = {
        "rows": report.rows,
        "iterations": report.iterations,
        "converged": report.converged,
        "seconds": event.seconds,
    }
    text = "chunk replayed" if event.replayed else "chunk updated"
    _say(logging.DEBUG, text, event.partition, report.chunk, more=fit)


def _committed(event: events.ChunkCommitted) -> None:
    more: dict[str, Any] = {} if event.seconds is None else {"seconds": event.seconds}
    if event.snapshot_bytes:
        more["snapshot_bytes"] = event.snapshot_bytes
    if event.letters:
        more["dead_letters"] = dict(event.letters)
    level = logging.WARNING if event.letters else logging.INFO
    place = (event.partition, event.ranking.chunk, event.next_offset)
    _say(level, "chunk committed", *place, more=more)


def _restored(event: events.Restored) -> None:
    more: dict[str, Any] = {"behind": event.behind, "seconds": event.seconds}
    if event.migrated:
        more["migrated"] = True
    if event.fallback is not None:
        more["fallback"] = event.fallback
    level = logging.INFO if event.fallback is None else logging.WARNING
    text = "model restored" if event.chunk else "model is new"
    _say(level, text, event.partition, event.chunk, event.offset, more)


def _say(
    level: int,
    text: str,
    partition: Partition,
    chunk: int | None = None,
    offset: int | None = None,
    more: Mapping[str, Any] | None = None,
) -> None:
    known = {
        "topic": partition.topic,
        "partition": partition.number,
        "chunk": chunk,
        "offset": offset,
    }
    fields = {name: value for name, value in known.items() if value is not None}
    _tell(level, text, {**fields, **(more or {})})


def _tell(level: int, text: str, fields: Mapping[str, Any]) -> None:
    _LOGGER.log(level, text, extra={"fields": dict(fields)})
