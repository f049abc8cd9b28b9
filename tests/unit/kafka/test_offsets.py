"""Reading offsets within a timeout, whatever the client does."""

from __future__ import annotations

import time
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from stream_fs.errors import RetriableError
from stream_fs.kafka import offsets
from stream_fs.kafka.errors import ConnectionState
from stream_fs.kafka.offsets import OffsetReader
from stream_fs.pipeline.ports import Partition

PLACE = Partition("state", 1)


class FakeAdmin:
    """Waits for a broker that is gone, until it has refreshed the leaders `looks` times."""

    def __init__(self, looks: int, error: int | None = None) -> None:
        self._needed = looks
        self._error = error
        self.looks = 0

    def list_topics(self, topic: str, timeout: float) -> Any:
        assert timeout > 0
        self.looks += 1
        found = SimpleNamespace(error=None, partitions={0: None, 1: None})
        return SimpleNamespace(topics={topic: found})

    def list_offsets(self, asked: dict[Any, Any], **_: Any) -> dict[Any, Future[Any]]:
        answers: dict[Any, Future[Any]] = {place: Future() for place in asked}
        for answer in answers.values():
            if self.looks >= self._needed:
                if self._error is None:
                    answer.set_result(SimpleNamespace(offset=7))
                else:
                    answer.set_exception(KafkaException(KafkaError(self._error)))
        return answers

    def poll(self, _: float) -> int:
        return 0


def reader(client: FakeAdmin, timeout: float) -> OffsetReader:
    return OffsetReader(cast(AdminClient, client), ConnectionState(), timeout)


@pytest.fixture(autouse=True)
def _short_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offsets, "_ATTEMPT_SECONDS", 0.01)


def test_leaders_are_refreshed_until_there_is_an_answer() -> None:
    client = FakeAdmin(looks=3)
    assert reader(client, 60.0).ends([PLACE]) == {PLACE: 7}
    assert client.looks == 3


def test_a_client_that_exceeds_its_timeout_is_not_waited_for() -> None:
    client = FakeAdmin(looks=1_000_000)
    with pytest.raises(RetriableError, match=r"offsets of state/1: .*TIMED_OUT"):
        reader(client, 0.02).first(PLACE)
    assert client.looks >= 1


def test_another_error_is_raised_at_once() -> None:
    client = FakeAdmin(looks=1, error=KafkaError.NOT_LEADER_FOR_PARTITION)
    with pytest.raises(RetriableError, match="NOT_LEADER"):
        reader(client, 3600.0).last_stable_offset(PLACE)
    assert client.looks == 1


def test_a_partition_that_does_not_exist_yet() -> None:
    client = FakeAdmin(looks=1)
    with pytest.raises(RetriableError, match=r"state has 2 partitions.*stream-fs topics create"):
        reader(client, 3600.0).ends([PLACE, Partition("state", 2)])


def test_a_shorter_timeout_applies() -> None:
    began = time.monotonic()
    with pytest.raises(RetriableError):
        reader(FakeAdmin(looks=1_000_000), 3600.0).within(0.02).first(PLACE)
    assert time.monotonic() - began < 3600.0


def test_a_heartbeat_is_reported_before_each_request() -> None:
    requests = []
    client = cast(AdminClient, FakeAdmin(looks=1))
    asked = OffsetReader(client, ConnectionState(), 10.0, lambda: requests.append(len(requests)))
    asked.within(5.0).first(PLACE)
    asked.last_stable_offset(PLACE)
    assert asked.count(PLACE.topic) == 2
    assert requests == [0, 1, 2]


@pytest.mark.parametrize(
    ("offset", "error", "expected"),
    [(7, None, 7), (-1001, None, None), (-1001, KafkaError.NOT_COORDINATOR, RetriableError)],
)
def test_an_offset_that_cannot_be_read_is_not_one_that_was_never_committed(
    offset: int, error: int | None, expected: Any
) -> None:
    class Group:
        def list_consumer_group_offsets(self, _: Any, **__: Any) -> dict[str, Future[Any]]:
            problem = None if error is None else KafkaError(error)
            place = SimpleNamespace(offset=offset, error=problem)
            answer: Future[Any] = Future()
            answer.set_result(SimpleNamespace(topic_partitions=[place]))
            return {"g": answer}

    asked = OffsetReader(cast(AdminClient, Group()), ConnectionState(), 1.0)
    if expected is RetriableError:
        with pytest.raises(RetriableError, match="NOT_COORDINATOR"):
            asked.committed("g", PLACE)
    else:
        assert asked.committed("g", PLACE) == expected
