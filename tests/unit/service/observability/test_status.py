"""The status document after events: its content, its size, and that it has no secrets."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import orjson
import pytest

from stream_fs.checkpoint import MergedPart
from stream_fs.pipeline import events
from stream_fs.pipeline.events.status import MOST_POINTS
from stream_fs.pipeline.ports import Partition
from stream_fs.records import Reason
from stream_fs.selector import Ranking, ViewRanking
from stream_fs.selector.imputation import Imputation
from stream_fs.service.http import status_pages
from stream_fs.service.observability.status import StatusObserver
from stream_fs.service.observability.status_document import (
    MOST_SCORES,
    MOST_VALUES,
    Health,
    encode,
)
from tests.support.configurations import LEAST, loaded, with_lines
from tests.support.make_events import (
    HERE,
    THERE,
    merge_events,
    partition_events,
    read,
    restored,
    updated,
)
from tests.support.schemas import errors_in

NOW = 1_700_000_000.0
READY = Health(alive=True, ready=True, reason=None)
SHAPED = LEAST.replace("dimension = 6", "dimension = 6\nshape = [2, 3]")


class Watched:
    """An observer with a clock of its own, and its document."""

    def __init__(self, folder: Path, text: str = SHAPED) -> None:
        self.now = NOW
        self.connection_error: str | None = None
        self.health = READY
        self.observe = StatusObserver(loaded(folder, text), lambda: self.now)

    def document(self) -> dict[str, Any]:
        """As a client receives it, and as its schema says."""
        found = self.encoded()
        assert errors_in("status", found) == []
        return found

    def encoded(self) -> dict[str, Any]:
        plain: dict[str, Any] = orjson.loads(
            encode(self.observe.status(self.health, self.connection_error))
        )
        return plain

    def partition(self, index: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = self.document()["partitions"][index]
        return found

    def view(self, index: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = self.document()["rankings"][0]["views"][index]
        return found


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def committed(
    chunk: int = 7, partition: Partition = HERE, first: int = 1, **changes: Any
) -> events.ChunkCommitted:
    """A ranking of both views, led by the feature `first`."""
    views = []
    for name, dimension, alpha in (("fourier", 4, 0.75), ("pixels", 6, 0.25)):
        scores = np.linspace(0.1, 0.4, dimension)
        order = np.array([first, *(i for i in range(dimension) if i != first)])
        views.append(ViewRanking(name, alpha, order, scores, None))
    ranking = Ranking("default", "relevance", "0123456789abcdef", chunk, 8 * chunk, tuple(views))
    given: dict[str, Any] = {
        "overlap": {},
        "missing": updated().report.missing,
        "imputed": updated().report.imputed,
        "start": 100,
        "next_offset": 111,
        "dead_letters": {},
        "snapshot_bytes": 0,
        "seconds": 0.25,
        "ranking_seconds": 0.003,
    }
    return events.ChunkCommitted(partition, ranking, **{**given, **changes})


def test_the_document_before_any_event(watched: Watched) -> None:
    found = watched.document()
    assert (found["stream"], found["partitions"], found["rankings"]) == ("digits", [], [])
    assert found["health"] == {"alive": True, "ready": True, "reason": None}


def test_the_document_is_valid_after_every_event(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    for event in partition_events():
        watched.observe(event)
        watched.document()


def test_a_partition_after_a_chunk(watched: Watched) -> None:
    watched.observe(events.PhaseChanged(HERE, "restoring"))
    watched.observe(restored(chunk=6))
    watched.observe(events.PhaseChanged(HERE, "running"))
    watched.observe(read(waiting=9))
    watched.observe(events.LagMeasured(HERE, 88))
    watched.observe(updated())
    watched.observe(committed(snapshot_bytes=4096))
    watched.now += 2.5
    assert watched.partition() == {
        "topic": "digits",
        "partition": 3,
        "state": "running",
        "reason": None,
        "sequence": 7,
        "behind": 0,
        "records": {"good": 9, "bad": {"malformed": 2, "negative": 1}, "rate": 4.8},
        "chunk": {"waiting": 1, "size": 8},
        "lag": 88,
        "commit": {
            "time": round(NOW * 1000),
            "age_seconds": 2.5,
            "offsets": {"from": 100, "next": 111},
        },
        "snapshot": {"sequence": 7, "bytes": 4096},
    }


def test_a_published_ranking(watched: Watched) -> None:
    watched.observe(updated())
    watched.observe(committed(7))
    (found,) = watched.document()["rankings"]
    assert (found["scope"], found["topic"], found["partition"]) == ("partition", "digits", 3)
    assert (found["sequence"], found["records"]) == (7, 56)
    assert found["history"] == {"sequence": [7], "time": [round(NOW * 1000)]}
    fourier, pixels = found["views"]
    assert (fourier["weight"], fourier["missing"], fourier["shape"]) == (0.75, 0.0, None)
    assert fourier["scores"] is None
    assert (pixels["weight"], pixels["missing"], pixels["shape"]) == (0.25, 0.375, [2, 3])
    assert [feature["index"] for feature in pixels["features"]] == [1, 0, 2, 3, 4, 5]
    assert pixels["features"][0]["relevance"] == pytest.approx(0.16)
    assert pixels["scores"] == pytest.approx(np.linspace(0.1, 0.4, 6).tolist())
    assert fourier["imputed"] == {"rows": 0, "weight": 1.0}
    assert pixels["imputed"] == {"rows": 2, "weight": 0.75}
    assert pixels["history"] == {"weight": [0.25], "missing": [0.375], "overlap": [None]}


def test_the_open_chunk_after_the_first_needs_fewer_records(watched: Watched) -> None:
    watched.observe(restored(chunk=0))
    watched.observe(events.RecordsRead(HERE, 210, {}, waiting=210, size=200))
    first = replace(updated().report, rows=200)
    watched.observe(
        events.ChunkUpdated(HERE, first, seconds=0.02, replayed=False, waiting=10, size=50)
    )
    assert watched.partition()["chunk"] == {"waiting": 10, "size": 50}


def test_what_is_missing_and_imputed_is_of_the_published_chunk(watched: Watched) -> None:
    """Several chunks may have updated the model before the first of them is published."""
    watched.observe(updated())
    imputed = {"fourier": Imputation(3, 0.5)}
    watched.observe(committed(8, missing={"fourier": 0.5}, imputed=imputed))
    assert watched.view()["missing"] == 0.5
    assert watched.view()["imputed"] == {"rows": 3, "weight": 0.5}


def test_the_overlap_is_the_published_one(tmp_path: Path) -> None:
    watched = Watched(tmp_path, with_lines("output", "top = 2"))
    watched.observe(committed(7, overlap={"fourier": 0.5, "pixels": 1.0}))
    found = watched.view()
    assert (found["top"], found["overlap"]) == (2, 0.5)
    assert len(found["features"]) == 2


@pytest.mark.parametrize(
    ("dimension", "published", "top"),
    [
        pytest.param(40, "20", 20, id="half"),
        pytest.param(40, "21", 10, id="more-than-half"),
        pytest.param(40, '"all"', 10, id="all"),
        pytest.param(6, '"all"', 3, id="all-of-few"),
        pytest.param(1, '"all"', 1, id="one"),
    ],
)
def test_the_overlap_is_that_of_the_leading_features(
    tmp_path: Path, dimension: int, published: str, top: int
) -> None:
    """Of more than half of the view, some are published in every ranking."""
    text = with_lines("output", f"top = {published}").replace(
        "dimension = 6", f"dimension = {dimension}"
    )
    watched = Watched(tmp_path, text)
    order = np.arange(dimension)
    view = ViewRanking("pixels", 1.0, order, np.ones(dimension), None)
    ranking = Ranking("default", "relevance", "f", 1, 8, (view,))
    watched.observe(
        events.ChunkCommitted(HERE, ranking, {"pixels": 0.5}, {}, {}, 0, 8, {}, 0, 0.1, 0.1)
    )
    assert (watched.view()["top"], watched.view()["overlap"]) == (top, 0.5)


def test_the_rate_is_that_of_the_last_minute(watched: Watched) -> None:
    watched.observe(restored())
    for _ in range(120):
        watched.now += 1
        watched.observe(read())
    assert watched.partition()["records"]["rate"] == pytest.approx(12.0)
    watched.now += 30
    assert watched.partition()["records"]["rate"] == pytest.approx(6.0)
    watched.now += 60
    assert watched.partition()["records"]["rate"] == 0.0
    assert watched.partition()["records"]["good"] == 120 * 9


def test_dead_letters_by_reason(watched: Watched) -> None:
    watched.observe(committed(1, dead_letters={"malformed": 2, "negative": 1}))
    watched.now += 1800
    watched.observe(committed(2, THERE, dead_letters={"malformed": 3}, start=5, next_offset=9))
    malformed, negative = watched.document()["dead_letters"]
    assert (malformed["reason"], malformed["total"], malformed["last_hour"]) == ("malformed", 5, 5)
    assert (malformed["partition"], malformed["offsets"]) == (4, {"from": 5, "next": 9})
    assert (negative["reason"], negative["total"]) == ("negative", 1)
    watched.now += 1860
    assert [found["last_hour"] for found in watched.document()["dead_letters"]] == [3, 0]
    assert watched.document()["dead_letters"][0]["total"] == 5


def test_without_a_broker_every_partition_waits(watched: Watched) -> None:
    watched.observe(events.PhaseChanged(HERE, "running"))
    watched.connection_error = "no broker answers"
    assert watched.partition()["state"] == "waiting"
    assert watched.partition()["reason"] == "no broker answers"
    watched.connection_error = None
    assert (watched.partition()["state"], watched.partition()["reason"]) == ("running", None)


def test_a_partition_waits_while_a_transaction_is_repeated(watched: Watched) -> None:
    watched.observe(events.PhaseChanged(HERE, "running"))
    watched.observe(events.TransactionFailed(HERE, "retried", "timed out"))
    watched.observe(events.PhaseChanged(HERE, "publishing"))
    assert (watched.partition()["state"], watched.partition()["reason"]) == ("waiting", "timed out")
    watched.observe(committed())
    watched.observe(events.PhaseChanged(HERE, "running"))
    assert (watched.partition()["state"], watched.partition()["reason"]) == ("running", None)
    watched.observe(events.TransactionFailed(HERE, "given_up", "no time"))
    assert watched.partition()["state"] == "running"


def test_a_fenced_partition_until_it_is_acquired_again(watched: Watched) -> None:
    watched.observe(events.PhaseChanged(HERE, "running"))
    watched.observe(committed(7))
    watched.observe(events.Fenced(HERE, "epoch", final=False))
    assert (watched.partition()["state"], watched.partition()["reason"]) == ("fenced", "epoch")
    watched.observe(events.PhaseChanged(HERE, "taking_over"))
    assert watched.partition()["state"] == "fenced"
    watched.observe(events.PhaseChanged(HERE, "restoring"))
    assert (watched.partition()["state"], watched.partition()["reason"]) == ("restoring", None)
    assert watched.document()["rankings"][0]["sequence"] == 7, "a published ranking stays published"


def test_a_partition_with_an_unknown_outcome_is_not_shown_as_fenced(watched: Watched) -> None:
    watched.observe(events.PhaseChanged(HERE, "running"))
    watched.observe(events.Fenced(HERE, "no answer", final=False, outcome_unknown=True))
    assert (watched.partition()["state"], watched.partition()["reason"]) == ("waiting", "no answer")
    watched.observe(restored())
    watched.observe(events.PhaseChanged(HERE, "running"))
    assert (watched.partition()["state"], watched.partition()["reason"]) == ("running", None)


def test_restoring_and_replaying(watched: Watched) -> None:
    watched.observe(events.PhaseChanged(HERE, "taking_over"))
    assert watched.partition()["state"] == "taking_over"
    watched.observe(events.PhaseChanged(HERE, "restoring"))
    watched.observe(events.RestoreFailed(HERE, "timed out"))
    assert (watched.partition()["state"], watched.partition()["reason"]) == ("waiting", "timed out")
    watched.observe(events.Restored(HERE, 6, 2, offset=100, seconds=0.5, fallback=None))
    watched.observe(events.PhaseChanged(HERE, "replaying"))
    found = watched.partition()
    assert (found["state"], found["sequence"], found["behind"]) == ("replaying", 8, 2)
    assert found["snapshot"] == {"sequence": 6, "bytes": None}
    watched.observe(updated(replayed=True))
    assert watched.partition()["behind"] == 1


def test_a_released_partition_has_no_entry(watched: Watched) -> None:
    watched.observe(committed(1, dead_letters={"malformed": 1}))
    watched.observe(committed(1, THERE))
    watched.observe(events.PartitionReleased(HERE))
    found = watched.document()
    assert [place["partition"] for place in found["partitions"]] == [THERE.number]
    assert [ranking["partition"] for ranking in found["rankings"]] == [THERE.number]
    assert found["dead_letters"] == []
    watched.observe(events.PartitionReleased(THERE))
    assert watched.document()["partitions"] == []


def merged(sequence: int, first: int = 1) -> events.MergedCommitted:
    """Of two partitions."""
    parts = (MergedPart("digits", 3, 7), MergedPart("digits", 4, 2))
    ranking = committed(first=first).ranking
    overlap = {"fourier": 1.0, "pixels": 1.0}
    return events.MergedCommitted(sequence, ranking, parts, overlap, 0, partitions=2, seconds=0.1)


def test_the_merged_ranking_comes_first_until_the_merge_is_released(watched: Watched) -> None:
    watched.observe(committed())
    for sequence in (4, 5):
        watched.now += 10
        watched.observe(merged(sequence))
    first, second = watched.document()["rankings"]
    assert (first["scope"], first["topic"], first["partition"]) == ("merged", None, None)
    assert (first["sequence"], first["history"]["sequence"]) == (5, [4, 5])
    assert first["time"] == round(watched.now * 1000)
    assert [view["missing"] for view in first["views"]] == [None, None]
    assert [view["imputed"] for view in first["views"]] == [None, None]
    assert [view["overlap"] for view in first["views"]] == [1.0, 1.0]
    assert (second["scope"], second["partition"]) == ("partition", 3)
    watched.observe(events.MergeReleased())
    assert [ranking["scope"] for ranking in watched.document()["rankings"]] == ["partition"]


def test_events_of_the_merge_add_no_partition(watched: Watched) -> None:
    for event in merge_events():
        if not isinstance(event, events.MergedCommitted):
            watched.observe(event)
    assert (watched.document()["partitions"], watched.document()["rankings"]) == ([], [])


def test_the_history_is_bounded_and_goes_back_to_the_beginning(watched: Watched) -> None:
    for chunk in range(1, 5001):
        watched.now += 1
        watched.observe(committed(chunk))
    (ranking,) = watched.document()["rankings"]
    sequence = ranking["history"]["sequence"]
    assert len(sequence) <= MOST_POINTS
    assert sequence == sorted(set(sequence))
    assert sequence[0] == 1
    newest = MOST_POINTS // 2
    assert sequence[-newest:] == list(range(5001 - newest, 5001))
    assert {len(values) for values in ranking["views"][0]["history"].values()} == {len(sequence)}


def test_the_document_of_many_partitions_is_bounded(tmp_path: Path) -> None:
    text = LEAST.replace("dimension = 6", "dimension = 4096\nshape = [64, 64]")
    watched = Watched(tmp_path, text)
    scores = np.random.default_rng(0).random(4096)
    views = (
        ViewRanking("fourier", 0.5, np.arange(4), scores[:4], None),
        ViewRanking("pixels", 0.5, np.arange(4096), scores, None),
    )
    for number in range(64):
        for chunk in range(1, 121):
            ranking = Ranking("default", "relevance", "f", chunk, 8, views)
            watched.observe(
                events.ChunkCommitted(
                    Partition("digits", number), ranking, {}, {}, {}, 0, 8, {}, 0, 0.1, 0.1
                )
            )
    found = watched.document()
    assert len(found["rankings"]) == 64
    values = [
        series
        for ranking in found["rankings"]
        for view in ranking["views"]
        for series in view["history"].values()
    ]
    assert sum(map(len, values)) <= MOST_VALUES
    newest = [ranking["history"]["sequence"][-1] for ranking in found["rankings"]]
    assert newest == [120] * 64
    kept = [ranking["views"][1]["scores"] for ranking in found["rankings"]]
    assert sum(len(one) for one in kept if one) == MOST_SCORES
    assert kept[0] == pytest.approx(scores.tolist())
    assert kept[-1] is None


def test_a_large_view_has_no_heat_map_and_few_features(tmp_path: Path) -> None:
    watched = Watched(tmp_path, LEAST.replace("dimension = 6", "dimension = 4097\nshape = [4097]"))
    view = ViewRanking("pixels", 1.0, np.arange(4097), np.ones(4097), None)
    ranking = Ranking("default", "relevance", "f", 1, 8, (view,))
    watched.observe(events.ChunkCommitted(HERE, ranking, {}, {}, {}, 0, 8, {}, 0, 0.1, 0.1))
    assert watched.view()["scores"] is None
    assert len(watched.view()["features"]) == 10


def test_secrets_are_redacted_from_every_text(tmp_path: Path) -> None:
    secret = "correct-horse"
    text = LEAST + f'\n[kafka.properties]\n"sasl.password" = "{secret}"\n"client.id" = "our-id"\n'
    watched = Watched(tmp_path, text)
    watched.observe(events.PhaseChanged(HERE, "running"))
    watched.observe(events.TransactionFailed(HERE, "retried", f"denied: {secret}"))
    watched.health = Health(alive=True, ready=False, reason=f"waiting for the broker: {secret}!")
    served = status_pages(lambda: watched.observe.status(watched.health, watched.connection_error))
    for path, page in served.items():
        body = page().body
        assert secret.encode() not in body, path
        assert b"our-id" not in body, path
        assert b"localhost:9092" not in body, path
    assert watched.partition()["reason"] == "denied: <redacted>"
    watched.connection_error = f"{secret} is wrong"
    assert watched.partition()["reason"] == "<redacted> is wrong"


def test_it_can_be_read_while_it_is_updated(watched: Watched) -> None:
    """A reader sees every partition as of one moment."""
    stop = threading.Event()
    torn: list[object] = []
    asked = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            found = watched.encoded()
            for place, ranking in zip(found["partitions"], found["rankings"], strict=True):
                if place["sequence"] != ranking["sequence"]:
                    torn.append(found)
            asked.set()

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for chunk in range(1, 400):
            for number in range(4):
                watched.observe(committed(chunk, Partition("digits", number)))
            if chunk % 100 == 0:
                watched.observe(events.PartitionReleased(Partition("digits", chunk % 3)))
        assert asked.wait(60)
    finally:
        stop.set()
        asking.join()
    assert torn == []


def test_every_reason_has_a_text_on_the_page() -> None:
    script = status_pages(lambda: pytest.fail("not asked"))["/page/states.js"]().body.decode()
    for reason in get_args(Reason):
        assert f"  {reason}: " in script


def test_the_partitions_of_the_stream_are_counted_beside_those_of_the_process(
    watched: Watched,
) -> None:
    watched.observe(events.PhaseChanged(HERE, "running"))
    assert watched.document()["stream_partitions"] is None
    watched.observe.stream_partitions({HERE.topic: 4, "other": 2})
    assert watched.document()["stream_partitions"] == 6
    assert len(watched.document()["partitions"]) == 1


def test_a_partition_that_was_added_since_the_start_is_counted(watched: Watched) -> None:
    watched.observe.stream_partitions({HERE.topic: 4})
    added = Partition(HERE.topic, 7)
    watched.observe(events.PhaseChanged(added, "taking_over"))
    assert watched.document()["stream_partitions"] == 8
    watched.observe(events.PartitionReleased(added))
    assert watched.document()["stream_partitions"] == 8
