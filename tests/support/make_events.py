"""Events of the pipeline, one of each kind."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stream_fs.checkpoint import MergedPart
from stream_fs.pipeline import events
from stream_fs.pipeline.ports import Partition
from stream_fs.selector import Ranking, Report, ViewRanking
from stream_fs.selector.imputation import Imputation

HERE = Partition("digits", 3)
THERE = Partition("digits", 4)


def report(chunk: int = 7) -> Report:
    return Report(
        chunk=chunk,
        rows=8,
        iterations=12,
        converged=True,
        objective=(3.0, 2.5),
        loss={"fourier": 0.5, "pixels": 0.25},
        alpha={"fourier": 0.75, "pixels": 0.25},
        orthogonality={"fourier": 0.125, "pixels": 0.5},
        missing={"fourier": 0.0, "pixels": 0.375},
        imputed={"fourier": Imputation(0, 1.0), "pixels": Imputation(2, 0.75)},
    )


def ranking(chunk: int = 7) -> Ranking:
    view = ViewRanking("fourier", 0.75, np.array([1, 0]), np.array([0.5, 1.0]), None)
    return Ranking("default", "relevance", "fingerprint", chunk, 56, (view,))


def restored(
    partition: Partition = HERE, *, chunk: int = 6, fallback: str | None = None
) -> events.Restored:
    return events.Restored(partition, chunk, behind=1, offset=100, seconds=0.5, fallback=fallback)


def read(partition: Partition = HERE, *, waiting: int = 9) -> events.RecordsRead:
    bad = {"malformed": 2, "negative": 1}
    return events.RecordsRead(partition, 9, bad, waiting=waiting, size=8)


def updated(
    partition: Partition = HERE, *, replayed: bool = False, waiting: int = 1
) -> events.ChunkUpdated:
    return events.ChunkUpdated(
        partition, report(), seconds=0.02, replayed=replayed, waiting=waiting, size=8
    )


def committed(
    partition: Partition = HERE,
    *,
    letters: Mapping[str, int] | None = None,
    snapshot_bytes: int = 4096,
) -> events.ChunkCommitted:
    return events.ChunkCommitted(
        partition,
        ranking(),
        overlap={"fourier": 0.5},
        missing=report().missing,
        imputed=report().imputed,
        start=100,
        next_offset=111,
        dead_letters=letters or {},
        snapshot_bytes=snapshot_bytes,
        seconds=0.25,
        ranking_seconds=0.003,
    )


def merged(sequence: int = 4) -> events.MergedCommitted:
    return events.MergedCommitted(
        sequence,
        ranking(),
        parts=(MergedPart("digits", 3, 7), MergedPart("digits", 4, 2)),
        overlap={"fourier": 0.5},
        as_of=1_700_000_000_000,
        partitions=3,
        seconds=0.125,
    )


def merge_events() -> list[events.Event]:
    """Every kind of event of the merge, except its release."""
    return [
        events.MergeAcquired(3),
        events.MergeFailed("retried", "timed out"),
        events.MergeFailed("aborted", "coordinator moved"),
        events.SourceSkipped(HERE, "incompatible", "clusters: 3 → 2"),
        events.SourceSkipped(HERE, "damaged", "torn"),
        events.SourceSkipped(THERE, "undecided", "open"),
        merged(),
        events.MergeFailed("refused", "not finite"),
        events.MergeFailed("undecided", "silence"),
        events.MergeFailed("fenced", "epoch"),
    ]


def partition_events(partition: Partition = HERE) -> list[events.Event]:
    """Every kind of event of a partition, except its release."""
    return [
        events.PhaseChanged(partition, "restoring"),
        events.RestoreFailed(partition, "timed out"),
        restored(partition),
        restored(partition, chunk=0),
        restored(partition, fallback="torn"),
        events.GroupOffsetDiffers(partition, group=90, state=100),
        events.PhaseChanged(partition, "replaying"),
        updated(partition, replayed=True),
        events.ReplayDiverged(partition, 7),
        events.PhaseChanged(partition, "running"),
        read(partition),
        updated(partition),
        events.TransactionFailed(partition, "retried", "timed out"),
        events.TransactionFailed(partition, "aborted", "coordinator moved"),
        committed(partition, letters={"malformed": 2}),
        events.TransactionFailed(partition, "given_up", "no broker"),
        events.SnapshotCommitted(partition, 7, 2048),
        events.LagMeasured(partition, 88),
        events.Fenced(partition, "silence", final=False, outcome_unknown=True),
        events.Fenced(partition, "epoch", final=False),
    ]
