"""Which properties librdkafka accepts, found without creating a client."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from stream_fs.errors import RetriableError
from stream_fs.kafka.librdkafka import (
    assignment_offsets,
    cause_code,
    property_error,
    transaction_error,
    underlying_error,
)
from stream_fs.pipeline.ports import Partition


@pytest.mark.parametrize("name", ["sa\udcd3l.password", "client\0.id", "", "sasl.mechansim", "é"])
def test_a_name_of_no_property_is_refused(name: str) -> None:
    """A name that cannot be encoded as UTF-8 would end the process."""
    assert property_error(name, "x") == "is not a property of librdkafka"


@pytest.mark.parametrize("value", ["x\udcd3", "a\0b", "\0"])
def test_text_that_cannot_be_passed_whole_is_refused(value: str) -> None:
    assert property_error("client.id", value) == "is not text that can be passed to librdkafka"


@pytest.mark.parametrize("value", ["grün", "", "a b", 3, True])
def test_other_text_is_accepted(value: str | int) -> None:
    assert property_error("client.id", value) is None


def test_a_property_is_checked_without_a_client() -> None:
    before = threading.active_count(), len(list(Path("/proc/self/task").iterdir()))
    right: dict[str, str | int] = {
        "client.rack": "r",
        "check.crcs": False,
        "fetch.wait.max.ms": "5",
        "ssl.ca.location": "/not/here",
        "compression.type": "zstd",
        "sasl.mechanism": "PLAIN",
    }
    for name, value in right.items():
        assert property_error(name, value) is None
    assert property_error("compression.type", "zip") == 'Invalid value "zip"'
    assert (threading.active_count(), len(list(Path("/proc/self/task").iterdir()))) == before


def test_the_error_of_a_transaction_is_repeated_to_another_begin() -> None:
    class Begun:
        def __init__(self, error: KafkaError) -> None:
            self._error = error

        def begin_transaction(self) -> None:
            raise KafkaException(self._error)

    def found(code: int) -> KafkaError | None:
        return transaction_error(cast(Producer, Begun(KafkaError(code))))

    assert found(KafkaError._STATE) is None  # a transaction is open, and has not failed
    assert found(KafkaError._FENCED) == KafkaError(KafkaError._FENCED)


def test_an_error_is_found_among_the_causes_of_another() -> None:
    error = KafkaError(KafkaError._FENCED)
    outer = SystemError()
    outer.__cause__ = KafkaException(error)
    assert underlying_error(outer) is error
    assert underlying_error(SystemError()) is None


def test_the_cause_of_a_fatal_error_is_found_in_its_text() -> None:
    cause = KafkaError.FENCED_INSTANCE_ID
    text = f"Fatal error: {KafkaError(cause).str()}: Fatal consumer error"
    assert cause_code(KafkaError(KafkaError._FATAL, text), [cause]) == cause
    assert cause_code(KafkaError(KafkaError._FATAL, text), []) == KafkaError._FATAL
    assert cause_code(KafkaError(KafkaError._TRANSPORT), [cause]) == KafkaError._TRANSPORT


def test_partitions_are_assigned_at_their_ends_or_at_0_where_these_are_unknown() -> None:
    known, unknown = Partition("known", 3), Partition("unknown", 0)

    def ends(places: Sequence[Partition]) -> Mapping[Partition, int]:
        if unknown in places:
            raise RetriableError("no answer")
        return dict.fromkeys(places, 7)

    assert assignment_offsets([known, unknown], ends) == {known: 7, unknown: 0}
