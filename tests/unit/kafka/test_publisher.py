"""Acquiring in short steps, open outcomes, timeouts, and heartbeats between blocking calls."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException

from stream_fs.errors import FencedError, RetriableError
from stream_fs.kafka import publisher as module
from stream_fs.kafka.publisher import KafkaPublisher
from stream_fs.kafka.settings import ClientSettings
from stream_fs.pipeline.ports import OutgoingRecord


class Unanswered:
    """A producer whose broker does not answer."""

    def poll(self, _: float) -> None: ...

    def purge(self) -> None: ...

    def begin_transaction(self) -> None: ...

    def init_transactions(self, _: float) -> None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no coordinator"))


def test_acquiring_in_vain_is_reported_from_time_to_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(module, "transactional_producer", lambda *_: Unanswered())
    monkeypatch.setattr("stream_fs.kafka.publisher.time.monotonic", lambda: now)
    publisher = KafkaPublisher(ClientSettings("nowhere:1", "g", timeout=15.0), "g/in/0")
    reported = []
    for _ in range(350):
        now += 0.1
        try:
            assert not publisher.acquire()
        except RetriableError as error:
            reported.append((round(now - 1000.0), str(error)))
    assert [second for second, _ in reported] == [15, 30]
    assert "acquiring g/in/0: no coordinator" in reported[0][1]


class Uncommitted(Unanswered):
    """A producer that is acquired and whose commit is not answered."""

    def init_transactions(self, _: float) -> None: ...

    def commit_transaction(self, _: float) -> None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer"))


def test_a_commit_with_an_open_outcome_is_not_aborted_but_acquired_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "transactional_producer", lambda *_: Uncommitted())
    publisher = KafkaPublisher(ClientSettings("nowhere:1", "g"), "g/in/0")
    assert publisher.acquire()
    publisher.begin()
    with pytest.raises(RetriableError):
        publisher.commit()
    with pytest.raises(FencedError) as caught:
        publisher.abort()
    assert caught.value.outcome_unknown


class Fenced(Unanswered):
    """A producer that is acquired and fenced before it commits."""

    def init_transactions(self, _: float) -> None: ...

    def commit_transaction(self, _: float) -> None:
        raise KafkaException(KafkaError(KafkaError._FENCED, "newer instance", fatal=True))


@pytest.mark.parametrize(("seconds", "timed_out"), [(59.0, False), (60.0, True)])
def test_after_a_transaction_timeout_there_is_no_other_owner(
    monkeypatch: pytest.MonkeyPatch, seconds: float, timed_out: bool
) -> None:
    now = 1000.0
    monkeypatch.setattr(module, "transactional_producer", lambda *_: Fenced())
    monkeypatch.setattr("stream_fs.kafka.publisher.time.monotonic", lambda: now)
    publisher = KafkaPublisher(ClientSettings("nowhere:1", "g", transaction_timeout=60.0), "g/in/0")
    assert publisher.acquire()
    publisher.begin()
    now += seconds
    with pytest.raises(FencedError) as caught:
        publisher.commit()
    assert caught.value.outcome_unknown == timed_out
    assert publisher.acquire(), "it can be acquired again either way"


class Recording(Uncommitted):
    """A producer without failures that records its blocking calls."""

    def __init__(self, steps: list[str]) -> None:
        self._steps = steps

    def produce(self, *_: object, on_delivery: Callable[..., None], **__: object) -> None:
        on_delivery(None, self)

    def offset(self) -> int:
        return 7

    def flush(self, _: float) -> None:
        self._steps.append("flush")

    def commit_transaction(self, _: float) -> None:
        self._steps.append("commit")

    def abort_transaction(self, _: float) -> None:
        self._steps.append("abort")


def test_a_heartbeat_is_reported_before_each_blocking_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[str] = []
    monkeypatch.setattr(module, "transactional_producer", lambda *_: Recording(steps))
    publisher = KafkaPublisher(
        ClientSettings("nowhere:1", "g"), "g/in/0", lambda: steps.append("-")
    )
    assert publisher.acquire()
    publisher.begin()
    for _ in range(2):
        publisher.send([OutgoingRecord("out", b"key", b"value")])
    publisher.commit()
    publisher.begin()
    publisher.abort()
    publisher.begin()
    publisher.close()
    sent = ["-", "-", "flush", "-", "-", "flush"]
    assert steps == [*sent, "-", "commit", "-", "abort", "-", "abort"]
