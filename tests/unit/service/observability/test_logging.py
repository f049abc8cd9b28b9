"""Logs: one line per event, in both formats, without secrets."""

from __future__ import annotations

import io
import json
import logging
import re
import time
from collections.abc import Iterator
from typing import Any, Literal

import pytest

from stream_fs.pipeline import events
from stream_fs.service.observability.logging import ROOT, log_event, set_up
from tests.support.make_events import (
    HERE,
    committed,
    merge_events,
    merged,
    partition_events,
    read,
    restored,
    updated,
)

LOGGER = logging.getLogger(ROOT)


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, levels = root.handlers[:], (root.level, LOGGER.level)
    root.handlers.clear()
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    LOGGER.setLevel(levels[1])


def start(
    format: Literal["text", "json"] = "json", level: str = "debug", **more: Any
) -> io.StringIO:
    out = io.StringIO()
    set_up(format, level, stream="stream", to=out, **more)
    return out


def entries(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def logged(event: events.Event) -> dict[str, Any]:
    out = start()
    log_event(event)
    (entry,) = entries(out)
    return entry


def test_a_committed_chunk_as_json() -> None:
    entry = logged(committed())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry.pop("time"))
    assert entry == {
        "level": "info",
        "event": "chunk committed",
        "stream": "stream",
        "topic": "digits",
        "partition": 3,
        "chunk": 7,
        "offset": 111,
        "seconds": 0.25,
        "snapshot_bytes": 4096,
    }


def test_a_committed_chunk_as_text() -> None:
    out = start("text")
    log_event(committed(letters={"malformed": 2}))
    moment, _, line = out.getvalue().partition(" ")
    assert moment.endswith("Z")
    assert line == (
        "WARNING chunk committed stream=stream topic=digits partition=3 chunk=7 offset=111 "
        'seconds=0.25 snapshot_bytes=4096 dead_letters={"malformed": 2}\n'
    )


@pytest.fixture
def far_from_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_from_utc")
def test_times_are_utc() -> None:
    out = start()
    record = logging.LogRecord(ROOT, logging.INFO, "", 0, "x", None, None)
    record.created = 86_400.25
    LOGGER.handle(record)
    assert entries(out)[0]["time"] == "1970-01-02T00:00:00.250Z"


@pytest.mark.parametrize(
    ("event", "level"),
    [
        (events.PhaseChanged(HERE, "taking_over"), "info"),
        (restored(), "info"),
        (restored(chunk=0), "info"),
        (restored(fallback="torn"), "warning"),
        (events.RestoreFailed(HERE, "timed out"), "warning"),
        (updated(), "debug"),
        (updated(replayed=True), "debug"),
        (committed(), "info"),
        (committed(letters={"malformed": 1}), "warning"),
        (events.SnapshotCommitted(HERE, 7, 10), "info"),
        (events.TransactionFailed(HERE, "given_up", "no broker"), "warning"),
        (events.Fenced(HERE, "epoch", final=True), "warning"),
        (events.Fenced(HERE, "state", final=False, outcome_unknown=True), "warning"),
        (events.PartitionReleased(HERE), "info"),
        (events.GroupOffsetDiffers(HERE, 90, 100), "warning"),
        (events.ReplayDiverged(HERE, 7), "warning"),
    ],
)
def test_levels(event: events.Event, level: str) -> None:
    entry = logged(event)
    assert entry["level"] == level
    assert (entry["topic"], entry["partition"]) == ("digits", 3)


@pytest.mark.parametrize(
    ("event", "level", "fields"),
    [
        (events.MergeAcquired(3), "info", {"sequence": 3}),
        (merged(4), "info", {"sequence": 4, "sources": 2, "partitions": 3, "seconds": 0.125}),
        (
            events.SourceSkipped(HERE, "damaged", "torn"),
            "warning",
            {"topic": "digits", "partition": 3, "reason": "damaged", "detail": "torn"},
        ),
        (events.MergeFailed("fenced", "epoch"), "warning", {"error": "epoch"}),
        (events.MergeReleased(), "info", {}),
    ],
)
def test_lines_of_the_merge(event: events.Event, level: str, fields: dict[str, object]) -> None:
    entry = logged(event)
    assert entry["level"] == level
    assert {name: entry[name] for name in fields} == fields


@pytest.mark.parametrize("event", [read(), events.LagMeasured(HERE, 88)])
def test_an_event_without_a_line_is_not_logged(event: events.Event) -> None:
    out = start()
    log_event(event)
    assert out.getvalue() == ""


@pytest.mark.parametrize("format", ["text", "json"])
def test_every_event_is_one_line(format: Literal["text", "json"]) -> None:
    out = start(format)
    every = [
        *partition_events(),
        events.PartitionReleased(HERE),
        *merge_events(),
        events.MergeReleased(),
    ]
    with_line = [event for event in every if event.log() is not None]
    assert len(with_line) == len(every) - 2
    for event in with_line:
        log_event(event)
    assert len(out.getvalue().splitlines()) == len(with_line)
    kinds = [*events.PartitionEvent.__subclasses__(), *events.MergeEvent.__subclasses__()]
    # By name: of a class with slots there are two, the one that `dataclass` found and its own.
    assert {type(event).__name__ for event in every} == {kind.__name__ for kind in kinds}


@pytest.mark.parametrize("format", ["text", "json"])
def test_no_text_breaks_a_line(format: Literal["text", "json"]) -> None:
    out = start(format)
    error = 'x\n2026-01-01T00:00:00.000Z ERROR forged\r\x1b[31m\u2028 level="x"'
    log_event(events.TransactionFailed(HERE, "aborted", error))
    LOGGER.warning(error)
    assert out.getvalue().count("\n") == 2
    assert not re.search(r"[\r\x1b]", out.getvalue())


@pytest.mark.parametrize("format", ["text", "json"])
def test_a_traceback_stays_on_its_line(format: Literal["text", "json"]) -> None:
    out = start(format)
    try:
        raise ValueError("boom")
    except ValueError:
        LOGGER.exception("failed")
    (line,) = out.getvalue().splitlines()
    assert "boom" in line
    assert "Traceback" in line


@pytest.mark.parametrize("format", ["text", "json"])
def test_secrets_are_redacted_wherever_they_occur(format: Literal["text", "json"]) -> None:
    out = start(format, secrets={"hunter", "hunter2", ""})
    LOGGER.error("said %s", "hunter2", extra={"fields": {"error": "hunter2!", "by": {"hunter": 1}}})
    try:
        raise ValueError("hunter2")
    except ValueError:
        LOGGER.exception("failed")
    logging.getLogger("library").warning("hunter")
    assert "hunter" not in out.getvalue()
    assert "said <redacted>" in out.getvalue()
    assert "<redacted>2" not in out.getvalue()


def test_the_level_decides_what_is_written() -> None:
    out = start(level="warning")
    log_event(committed())
    log_event(events.ReplayDiverged(HERE, 7))
    assert [entry["level"] for entry in entries(out)] == ["warning"]


def test_warnings_of_libraries_are_written() -> None:
    out = start()
    logging.getLogger("library").info("busy")
    logging.getLogger("library").warning("broken")
    (entry,) = entries(out)
    assert (entry["event"], entry["logger"]) == ("broken", "library")
    assert entry["stream"] == "stream"


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (events.PartitionReleased(HERE), "partition released"),
        (events.MergeReleased(), "merge released"),
    ],
)
def test_a_release_does_not_read_as_a_failure(event: events.Event, line: str) -> None:
    """Every graceful shutdown and every rebalance has these lines."""
    assert logged(event)["event"] == line
