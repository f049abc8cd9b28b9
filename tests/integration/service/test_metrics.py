"""/metrics of a running service, compared with its input and output."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from importlib.metadata import version
from itertools import islice
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from stream_fs.service.observability.metrics import MetricsObserver
from stream_fs.wire.records.encoder import encode_record
from tests.deploy.promtool import promtool
from tests.integration.service.conftest import MakeService, MakeStream
from tests.integration.service.scraping import Scraped
from tests.integration.service.services import Service
from tests.integration.service.state import read_state
from tests.integration.service.stream import CHUNK, DIMENSIONS, FIRST, Stream, chunks, rows

CHUNKS = 3
WAITING = 7
"""Good records that do not make a chunk."""
BAD = {b"not a record": "malformed", b"\x81\xa1v\x02": "version", b"": "malformed"}


def caught_up(service: Service, stream: Stream, good: int, chunks: int) -> Scraped:
    """A scrape after so many good records were read, and the lag was looked at.

    Chunks are counted when they are committed, which goes on beside reading.
    """
    scraped = Scraped(service, stream)

    def done() -> bool:
        nonlocal scraped
        scraped = Scraped(service, stream)
        read = scraped("stream_fs_records_total", outcome="good")
        counted = sum(scraped.by("stream_fs_chunks_total", "outcome").values())
        return read == good and counted == chunks and scraped("stream_fs_lag_records") == 0

    service.wait_for(done, f"{good} good records are read, and {chunks} chunks are done")
    return scraped


def last_ranking(stream: Stream) -> dict[str, Any]:
    published = stream.rankings()[stream.only]
    ranking: dict[str, Any] = json.loads(published[-1].value or b"")
    assert ranking["sequence"] == len(published) == CHUNKS
    return ranking


def leading_overlap(stream: Stream) -> dict[str, Any]:
    """Of the last two rankings, by view: of the first half of the features."""
    before, last = (json.loads(m.value or b"") for m in stream.rankings()[stream.only][-2:])
    overlap = {}
    for then, now in zip(before["views"], last["views"], strict=True):
        half = DIMENSIONS[now["name"]] // 2
        leading = [{f["index"] for f in view["features"][:half]} for view in (then, now)]
        overlap[now["name"]] = pytest.approx(len(leading[0] & leading[1]) / half)
    return overlap


def test_every_metric_has_the_measured_value(stream: Stream, service: MakeService) -> None:
    began = time.time()
    folded = list(rows(FIRST + (CHUNKS - 1) * CHUNK))
    good = [encode_record(views) for views in folded]
    waiting = [encode_record(views) for views in islice(rows(99, seed=1), WAITING)]
    stream.feed([*good[:20], *BAD, *good[20:], *waiting])
    one = service(stream)
    scraped = caught_up(one, stream, len(good) + WAITING, CHUNKS)
    ranking = last_ranking(stream)

    # --- records ---
    bad = Counter(BAD.values())
    assert scraped("stream_fs_records_total", outcome="bad") == len(BAD)
    assert scraped.by("stream_fs_bad_records_total", "reason") == bad
    assert scraped.by("stream_fs_dead_letters_total", "reason") == bad
    assert len(stream.letters()[stream.only]) == len(BAD)
    assert scraped.by("stream_fs_missing_views_total", "view") == {
        name: sum(name not in views for views in folded) for name in DIMENSIONS
    }

    imputed = {row["name"]: ranking["records"]["imputed"][row["name"]] for row in ranking["views"]}
    assert scraped.by("stream_fs_imputed_rows_total", "view").keys() == imputed.keys()
    assert scraped.by("stream_fs_imputation_weight", "view") == {
        name: one["weight"] for name, one in imputed.items()
    }

    # --- chunks, and the fit of the last one ---
    assert scraped.by("stream_fs_chunks_total", "outcome") == {"published": CHUNKS}
    assert scraped("stream_fs_chunk_fill_ratio") == pytest.approx(WAITING / CHUNK)
    # Chunks that were there may have shared a transaction; not the first, which has a snapshot.
    transactions = scraped("stream_fs_transaction_seconds_count")
    assert transactions is not None
    assert 2 <= transactions <= CHUNKS
    for timed, times in (("update", CHUNKS), ("ranking", CHUNKS), ("transaction", transactions)):
        name = f"stream_fs_{timed}_seconds"
        assert scraped(f"{name}_count") == times
        assert scraped(f"{name}_bucket", le="+Inf") == times
        assert 0 < (scraped(f"{name}_sum") or 0) < time.time() - began
    fit = ranking["fit"]
    assert scraped("stream_fs_iterations") == fit["iterations"]
    assert scraped("stream_fs_objective") == pytest.approx(fit["objective"])
    errors = scraped.by("stream_fs_orthogonality_error", "view")
    assert errors.keys() == DIMENSIONS.keys()
    assert max(errors.values()) == pytest.approx(fit["orthogonality"])
    alpha = scraped.by("stream_fs_alpha", "view")
    assert alpha == {view["name"]: pytest.approx(view["weight"]) for view in ranking["views"]}
    assert sum(alpha.values()) == pytest.approx(1)
    # All features are published: their overlap is 1, that of the leading ones is not.
    assert {change["overlap"] for change in ranking["selection"].values()} == {1}
    assert scraped.by("stream_fs_top_overlap_ratio", "view") == leading_overlap(stream)

    # --- transactions and snapshots ---
    assert scraped.by("stream_fs_transaction_failures_total", "outcome") == {}
    assert began < (scraped("stream_fs_last_commit_timestamp_seconds") or 0) < time.time()
    newest = read_state(stream).snapshots[0]
    assert scraped("stream_fs_snapshot_bytes") == sum(len(value or b"") for _, value in newest)

    # --- lifecycle ---
    phases = scraped.by("stream_fs_task_phase", "phase")
    assert phases == {**dict.fromkeys(phases, 0), "running": 1}
    assert scraped.by("stream_fs_restores_total", "outcome") == {"new": 1}
    assert scraped("stream_fs_restore_seconds_count") == 1
    assert scraped("stream_fs_restore_failures_total") is None
    assert scraped("stream_fs_replay_divergences_total") is None
    assert scraped.plain("stream_fs_ready", stream=stream.name) == 1
    (build,) = scraped.families["stream_fs_build_info"].samples
    assert (build.labels["version"], build.value) == (version("stream-fs"), 1)

    # --- the process ---
    # It is counted in ticks of 10 ms from the boot time, which is cut to whole seconds.
    assert began - 1.1 < scraped.plain("process_start_time_seconds") < time.time()
    assert 0 < scraped.plain("process_cpu_seconds_total") < time.time() - began + 1
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 10_000_000 < scraped.plain("process_resident_memory_bytes") < pages
    assert 0 < scraped.plain("process_open_fds") < scraped.plain("process_max_fds")

    every_declared_metric_is_there(scraped)
    promtool("check", "metrics", given=scraped.text)
    after_a_crash_it_counts_anew(one, stream, service, len(good) + WAITING)


def test_the_metrics_of_the_merge_match_the_rankings_topic(
    make_stream: MakeStream, service: MakeService
) -> None:
    began = time.time()
    often = {"merge.every_seconds": 0.2, "checkpoint.every_chunks": 1}
    stream = make_stream(often, partitions=3)
    for number in (0, 1):  # the third never has a full chunk
        stream.feed(chunks(CHUNKS, seed=number), stream.partitions[number])
    one = service(stream)
    merged: list[dict[str, Any]] = []

    def all_merged() -> bool:
        merged[:] = stream.merged()
        sequences = [source["sequence"] for source in merged[-1]["sources"]] if merged else []
        return sequences == [CHUNKS, CHUNKS]

    one.wait_for(all_merged, "the last chunks are merged")
    of = {"stream": stream.name}
    scraped = Scraped(one, stream)

    def counted() -> bool:
        """The metrics follow a moment after the commit."""
        nonlocal scraped
        scraped = Scraped(one, stream)
        return scraped.plain("stream_fs_merged_rankings_total", **of) == len(merged)

    one.wait_for(counted, "the last merged ranking is counted")
    assert scraped.plain("stream_fs_merge_seconds_count", **of) == len(merged)
    assert 0 < scraped.plain("stream_fs_merge_seconds_sum", **of) < time.time() - began
    assert scraped.plain("stream_fs_merge_sources", **of) == len(merged[-1]["sources"]) == 2
    assert scraped.plain("stream_fs_merge_partitions", **of) == len(stream.partitions) == 3
    last = scraped.plain("stream_fs_last_merge_timestamp_seconds", **of)
    assert began < last < time.time()
    assert scraped.by("stream_fs_merge_failures_total", "outcome") == {}
    assert scraped.by("stream_fs_merge_skips_total", "reason").keys() <= {"undecided"}
    assert stream.merged() == merged

    stream.feed(chunks(CHUNKS)[-CHUNK:], stream.partitions[0])
    one.wait_for(lambda: len(stream.merged()) > len(merged), "another merged ranking")
    one.wait_for(
        lambda: Scraped(one, stream).plain("stream_fs_last_merge_timestamp_seconds", **of) > last,
        "a later time",
    )


def every_declared_metric_is_there(scraped: Scraped) -> None:
    """With its meaning and its kind, also those that have counted nothing yet; and no other."""
    registry = CollectorRegistry()
    MetricsObserver(registry, "stream", lambda: 0.0)
    for family in registry.collect():
        name = f"{family.name}_info" if family.type == "info" else family.name
        found = scraped.families.pop(name)
        assert found.documentation == family.documentation
        assert found.type == {"info": "gauge"}.get(family.type, family.type)
    assert all(name.startswith("process_") for name in scraped.families)


def after_a_crash_it_counts_anew(
    one: Service, stream: Stream, service: MakeService, good: int
) -> None:
    """What was published is not published, and its dead letters and missing views not counted."""
    one.kill()
    scraped = caught_up(service(stream), stream, good - FIRST, CHUNKS - 1)
    assert scraped.by("stream_fs_chunks_total", "outcome") == {"replayed": CHUNKS - 1}
    assert scraped.by("stream_fs_restores_total", "outcome") == {"restored": 1}
    assert scraped("stream_fs_update_seconds_count") == CHUNKS - 1
    assert scraped("stream_fs_transaction_seconds_count") is None
    assert scraped("stream_fs_last_commit_timestamp_seconds") is None
    assert scraped.by("stream_fs_dead_letters_total", "reason") == {}
    assert scraped.by("stream_fs_missing_views_total", "view") == {}
    assert last_ranking(stream)
