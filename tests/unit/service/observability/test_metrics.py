"""Metrics: how they are declared, their values after events, and their removal."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

from stream_fs.pipeline import events
from stream_fs.pipeline.events.instruments import PARTITION
from stream_fs.pipeline.ports import Partition
from stream_fs.service.observability.metrics import MetricsObserver
from stream_fs.service.observability.status import StatusObserver
from stream_fs.service.observability.status_document import Health
from tests.support.configurations import loaded
from tests.support.drifting_stream import CONFIGURATION, drifting_process
from tests.support.make_events import (
    HERE,
    THERE,
    committed,
    merge_events,
    partition_events,
    read,
    restored,
    updated,
)
from tests.support.simulated_process import TOPIC, published

NOW = 1_700_000_000.0


class Watched:
    """An observer and its registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.observe = MetricsObserver(self.registry, "stream", lambda: NOW)

    def value(self, name: str, partition: Partition = HERE, **labels: str) -> float | None:
        of = {
            "stream": "stream",
            "topic": partition.topic,
            "partition": str(partition.number),
        }
        return self.registry.get_sample_value(name, {**of, **labels})

    def series(self) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
        return {
            (sample.name, tuple(sorted(sample.labels.items())))
            for metric in self.registry.collect()
            for sample in metric.samples
        }


@pytest.fixture
def watched() -> Watched:
    return Watched()


def declared() -> list[Metric]:
    registry = CollectorRegistry()
    MetricsObserver(registry, "stream", lambda: NOW)
    return list(registry.collect())


@pytest.mark.parametrize("metric", declared(), ids=lambda metric: metric.name)
def test_a_metric_is_declared_by_the_rules(metric: Metric) -> None:
    # The library takes `_total` and `_info` off the names that it lists.
    assert re.fullmatch(r"stream_fs(_[a-z]+)+", metric.name)
    assert not re.search(r"milli|micro|kilo|percent|_(ms|count|sum|bucket|total)$", metric.name)
    assert metric.documentation.endswith(".")
    if metric.type == "histogram":
        assert metric.name.endswith("_seconds")


def test_a_quantity_has_its_unit_at_the_end_of_its_name() -> None:
    ends = {metric.name.rsplit("_", 1)[1] for metric in declared() if metric.type == "gauge"}
    without_unit = {"iterations", "objective", "alpha", "error", "phase", "ready"}
    without_unit |= {"sources", "partitions", "weight"}
    assert ends - without_unit == {"records", "ratio", "seconds", "bytes"}


def test_every_metric_has_a_series_after_every_event(watched: Watched) -> None:
    for event in (*partition_events(), *merge_events()):
        watched.observe(event)
    silent = [metric.name for metric in watched.registry.collect() if not metric.samples]
    assert silent == []


def test_values_after_every_event_of_a_partition(watched: Watched) -> None:
    for event in partition_events():
        watched.observe(event)
    value = watched.value
    assert value("stream_fs_records_total", outcome="good") == 9
    assert value("stream_fs_records_total", outcome="bad") == 3
    assert value("stream_fs_bad_records_total", reason="malformed") == 2
    assert value("stream_fs_bad_records_total", reason="negative") == 1
    assert value("stream_fs_dead_letters_total", reason="malformed") == 2
    assert value("stream_fs_missing_views_total", view="fourier") == 0
    assert value("stream_fs_missing_views_total", view="pixels") == 3, "not of the replayed chunk"
    assert value("stream_fs_imputed_rows_total", view="fourier") == 0
    assert value("stream_fs_imputed_rows_total", view="pixels") == 2, "not of the replayed chunk"
    assert value("stream_fs_imputation_weight", view="pixels") == 0.75
    assert value("stream_fs_lag_records") == 88
    assert value("stream_fs_chunks_total", outcome="published") == 1
    assert value("stream_fs_chunks_total", outcome="replayed") == 1
    assert value("stream_fs_chunk_fill_ratio") == 1 / 8
    assert value("stream_fs_update_seconds_count") == 2
    assert value("stream_fs_update_seconds_sum") == pytest.approx(0.04)
    assert value("stream_fs_update_seconds_bucket", le="0.01") == 0
    assert value("stream_fs_update_seconds_bucket", le="0.025") == 2
    assert value("stream_fs_ranking_seconds_count") == 1
    assert value("stream_fs_ranking_seconds_sum") == 0.003
    assert value("stream_fs_transaction_seconds_count") == 1
    assert value("stream_fs_transaction_seconds_sum") == 0.25
    assert value("stream_fs_iterations") == 12
    assert value("stream_fs_objective") == 2.5
    assert value("stream_fs_alpha", view="fourier") == 0.75
    assert value("stream_fs_alpha", view="pixels") == 0.25
    assert value("stream_fs_orthogonality_error", view="pixels") == 0.5
    assert value("stream_fs_top_overlap_ratio", view="fourier") == 0.5
    for outcome in ("retried", "aborted", "given_up", "undecided", "fenced"):
        assert value("stream_fs_transaction_failures_total", outcome=outcome) == 1
    assert value("stream_fs_last_commit_timestamp_seconds") == NOW
    assert value("stream_fs_snapshot_bytes") == 2048
    for phase in ("taking_over", "restoring", "replaying", "publishing"):
        assert value("stream_fs_task_phase", phase=phase) == 0
    assert value("stream_fs_task_phase", phase="running") == 1
    for outcome in ("new", "restored", "fallback"):
        assert value("stream_fs_restores_total", outcome=outcome) == 1
    assert value("stream_fs_restore_seconds_count") == 3
    assert value("stream_fs_restore_seconds_sum") == 1.5
    assert value("stream_fs_restore_failures_total") == 1
    assert value("stream_fs_replay_divergences_total") == 1


def test_the_build_has_its_version(watched: Watched) -> None:
    (build,) = (m for m in watched.registry.collect() if m.name == "stream_fs_build")
    (sample,) = build.samples
    assert sample.name == "stream_fs_build_info"
    assert sample.labels["version"] == version("stream-fs")
    assert sample.value == 1


def test_readiness_is_checked_at_every_scrape(watched: Watched) -> None:
    def exported() -> float | None:
        return watched.registry.get_sample_value("stream_fs_ready", {"stream": "stream"})

    assert exported() == 0
    ready = True
    watched.observe.ready_when(lambda: ready)
    assert exported() == 1
    ready = False
    assert exported() == 0


def test_the_open_chunk_is_never_fuller_than_full(watched: Watched) -> None:
    watched.observe(read(waiting=20))
    assert watched.value("stream_fs_chunk_fill_ratio") == 1
    watched.observe(updated(waiting=12))
    assert watched.value("stream_fs_chunk_fill_ratio") == 1
    watched.observe(updated(waiting=4))
    assert watched.value("stream_fs_chunk_fill_ratio") == 4 / 8


def test_a_chunk_without_snapshot_does_not_change_its_size(watched: Watched) -> None:
    watched.observe(committed(snapshot_bytes=4096))
    watched.observe(committed(snapshot_bytes=0))
    assert watched.value("stream_fs_snapshot_bytes") == 4096


def test_a_released_partition_has_no_series(watched: Watched) -> None:
    before = watched.series()
    for event in partition_events(THERE):
        watched.observe(event)
    with_the_other = watched.series()
    for event in partition_events(HERE):
        watched.observe(event)
    assert len(watched.series()) > 1.9 * len(with_the_other)

    watched.observe(events.PartitionReleased(HERE))
    assert watched.series() == with_the_other
    watched.observe(events.PartitionReleased(THERE))
    assert watched.series() == before


def test_a_partition_without_series_can_be_released(watched: Watched) -> None:
    before = watched.series()
    watched.observe(restored())
    watched.observe(events.PartitionReleased(HERE))
    watched.observe(events.PartitionReleased(THERE))
    assert watched.series() == before


def test_a_partition_acquired_again_counts_from_zero(watched: Watched) -> None:
    for _ in range(2):
        watched.observe(committed())
        watched.observe(committed())
        assert watched.value("stream_fs_chunks_total", outcome="published") == 2
        watched.observe(events.PartitionReleased(HERE))


def test_every_series_of_a_partition_has_its_labels(watched: Watched) -> None:
    for event in partition_events():
        watched.observe(event)
    for metric in watched.registry.collect():
        if metric.name not in ("stream_fs_build", "stream_fs_ready"):
            assert all(set(PARTITION) <= set(sample.labels) for sample in metric.samples)


def test_values_after_every_event_of_the_merge_until_its_release(watched: Watched) -> None:
    before = watched.series()
    for event in merge_events():
        watched.observe(event)

    def value(name: str, **labels: str) -> float | None:
        return watched.registry.get_sample_value(name, {"stream": "stream", **labels})

    assert value("stream_fs_merged_rankings_total") == 1
    assert value("stream_fs_merge_seconds_sum") == 0.125
    assert value("stream_fs_merge_sources") == 2
    assert value("stream_fs_merge_partitions") == 3
    assert value("stream_fs_last_merge_timestamp_seconds") == NOW
    for reason in ("incompatible", "damaged", "undecided"):
        assert value("stream_fs_merge_skips_total", reason=reason) == 1
    for outcome in ("retried", "aborted", "refused", "undecided", "fenced"):
        assert value("stream_fs_merge_failures_total", outcome=outcome) == 1
    assert len(watched.series()) > len(before)
    watched.observe(events.MergeReleased())
    assert watched.series() == before


def test_the_overlap_shows_a_drift_where_all_features_are_published(
    watched: Watched, tmp_path: Path
) -> None:
    """The status page shows the same."""
    made, life = drifting_process()
    page = StatusObserver(loaded(tmp_path, CONFIGURATION), lambda: NOW)
    for event in life.events:
        watched.observe(event)
        page(event)
    assert json.loads(published(made)[-1][1])["selection"]["wide"]["overlap"] == 1

    before, last = (
        {view.name: view.order.tolist() for view in event.ranking.views}
        for event in life.of(events.ChunkCommitted)[-2:]
    )
    (shown,) = page.status(Health(alive=True, ready=True, reason=None), None).rankings
    for view, leading in zip(shown.views, (10, 3), strict=True):
        expected = len({*before[view.name][:leading]} & {*last[view.name][:leading]}) / leading
        assert 0 < expected < 1
        place = Partition(TOPIC, 0)
        assert watched.value("stream_fs_top_overlap_ratio", place, view=view.name) == expected
        assert (view.top, view.overlap) == (leading, expected)
