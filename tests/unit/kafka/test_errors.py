"""Client errors, translated into the error tree of the package."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from stream_fs.errors import (
    AbortableError,
    FatalError,
    FencedError,
    RetriableError,
    TransportError,
)
from stream_fs.kafka.errors import ConnectionState, classify, translate_errors


def error(
    code: int, *, fatal: bool = False, retriable: bool = False, abort: bool = False
) -> KafkaError:
    return KafkaError(code, "said so", fatal, retriable, abort)


@pytest.mark.parametrize(
    ("code", "unknown"),
    [
        (KafkaError._FENCED, False),
        (KafkaError.PRODUCER_FENCED, False),
        (KafkaError.INVALID_PRODUCER_EPOCH, False),
        (KafkaError.INVALID_TXN_STATE, True),
        (KafkaError.INVALID_PRODUCER_ID_MAPPING, True),
    ],
)
def test_a_fenced_error_says_whether_there_is_another_owner(code: int, unknown: bool) -> None:
    found = classify(error(code), "aborting", ConnectionState())
    assert isinstance(found, FencedError)
    assert found.outcome_unknown == unknown


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        (error(KafkaError._FENCED, fatal=True), FencedError),
        (error(KafkaError.PRODUCER_FENCED), FencedError),
        (error(KafkaError.INVALID_PRODUCER_EPOCH, abort=True), FencedError),
        (error(KafkaError.INVALID_TXN_STATE, fatal=True), FencedError),
        (error(KafkaError.INVALID_PRODUCER_ID_MAPPING), FencedError),
        (error(KafkaError._TIMED_OUT, retriable=True), RetriableError),
        (error(KafkaError._TIMED_OUT), RetriableError),
        (error(KafkaError._TRANSPORT), RetriableError),
        (error(KafkaError._ALL_BROKERS_DOWN), RetriableError),
        (error(KafkaError.NOT_COORDINATOR, retriable=True), RetriableError),
        # An admin client does not flag errors of a restarted broker as retriable.
        (error(KafkaError.FENCED_LEADER_EPOCH), RetriableError),
        (error(KafkaError.NOT_LEADER_FOR_PARTITION), RetriableError),
        (error(KafkaError.COORDINATOR_NOT_AVAILABLE), RetriableError),
        (error(KafkaError.UNKNOWN_PRODUCER_ID, abort=True), AbortableError),
        # The clock may be corrected.
        (error(KafkaError.INVALID_TIMESTAMP, abort=True), AbortableError),
        (error(KafkaError._TIMED_OUT, retriable=True, abort=True), AbortableError),
        (error(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, fatal=True), FatalError),
        (error(KafkaError._STATE), FatalError),
        # Neither an abort nor a retry helps.
        (error(KafkaError.TOPIC_AUTHORIZATION_FAILED, abort=True), FatalError),
        (error(KafkaError.MSG_SIZE_TOO_LARGE, abort=True), FatalError),
        (error(KafkaError._UNKNOWN_TOPIC, abort=True), FatalError),
    ],
)
def test_the_class_says_how_to_react(reported: KafkaError, expected: type[TransportError]) -> None:
    found = classify(reported, "committing", ConnectionState())
    assert type(found) is expected
    assert str(found).startswith(f"committing: said so [{reported.name()}]")


@pytest.mark.parametrize(
    ("code", "setting"),
    [
        (KafkaError._AUTHENTICATION, "sasl.password"),
        (KafkaError.FENCED_INSTANCE_ID, "group.instance.id"),
        (KafkaError.UNRELEASED_INSTANCE_ID, "group.instance.id"),
        (KafkaError.INVALID_SESSION_TIMEOUT, "session.timeout.ms"),
        (KafkaError.SASL_AUTHENTICATION_FAILED, "sasl.mechanism"),
        (KafkaError._SSL, "ssl.ca.location"),
        (KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "transactional ids"),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, "consumer group"),
        (KafkaError.INVALID_TRANSACTION_TIMEOUT, "transaction.max.timeout.ms"),
        (KafkaError.MSG_SIZE_TOO_LARGE, "max.message.bytes"),
        (KafkaError._BAD_COMPRESSION, "receive.message.max.bytes"),
        (KafkaError._UNKNOWN_TOPIC, "stream-fs topics create"),
    ],
)
def test_a_fatal_error_names_what_to_change(code: int, setting: str) -> None:
    found = classify(error(code), "sending", ConnectionState())
    assert isinstance(found, FatalError)
    assert setting in str(found)


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (KafkaError.FENCED_INSTANCE_ID, "give every process its own"),
        (KafkaError.UNRELEASED_INSTANCE_ID, "session timeout"),
    ],
)
def test_the_cause_of_a_fatal_error_is_found_in_its_text(code: int, advice: str) -> None:
    text = f"Fatal error: {KafkaError(code).str()}: Fatal consumer error"
    found = classify(KafkaError(KafkaError._FATAL, text, fatal=True), "polling", ConnectionState())
    assert isinstance(found, FatalError)
    assert advice in str(found)
    other = classify(
        KafkaError(KafkaError._FATAL, "Fatal error: another", fatal=True),
        "polling",
        ConnectionState(),
    )
    assert isinstance(other, FatalError)
    assert advice not in str(other)


def test_a_missing_topic_is_retriable() -> None:
    found = classify(error(KafkaError.UNKNOWN_TOPIC_OR_PART), "asking", ConnectionState())
    assert isinstance(found, RetriableError)
    assert "stream-fs topics create" in str(found)


def test_a_wrong_clock_is_named() -> None:
    found = classify(
        error(KafkaError.INVALID_TIMESTAMP), "sending", ConnectionState(), otherwise=AbortableError
    )
    assert isinstance(found, AbortableError)
    assert "message.timestamp.type=LogAppendTime" in str(found)


def test_a_delivery_error_voids_the_transaction_unless_it_is_worse() -> None:
    timed_out = error(KafkaError._MSG_TIMED_OUT)
    assert isinstance(
        classify(timed_out, "sending", ConnectionState(), otherwise=AbortableError), AbortableError
    )
    fenced = error(KafkaError.INVALID_PRODUCER_EPOCH)
    assert isinstance(
        classify(fenced, "sending", ConnectionState(), otherwise=AbortableError), FencedError
    )
    denied = error(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    assert isinstance(
        classify(denied, "sending", ConnectionState(), otherwise=AbortableError), FatalError
    )


def test_the_reason_of_a_refused_connection_is_shown() -> None:
    connection = ConnectionState()
    connection.record_error(KafkaError(KafkaError._AUTHENTICATION, "wrong credentials"))
    found = classify(error(KafkaError._TIMED_OUT), "committing", connection)
    assert isinstance(found, RetriableError)
    assert "wrong credentials" in str(found)
    assert "sasl.password" in str(found)


@pytest.mark.parametrize("code", [KafkaError._TRANSPORT, KafkaError._RESOLVE])
def test_when_all_brokers_are_down_the_last_attempt_is_the_reason(code: int) -> None:
    connection = ConnectionState()
    connection.record_error(KafkaError(code, "connection refused"))
    assert connection.error is None  # it may be one of several
    connection.record_error(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    assert (
        connection.error
        == "connection refused (check kafka.bootstrap, and security.protocol in kafka.properties)"
    )
    connection.record_error(KafkaError(code, "no route"))
    assert (
        connection.error
        == "no route (check kafka.bootstrap, and security.protocol in kafka.properties)"
    )


def test_brokers_that_are_down_without_a_reason() -> None:
    connection = ConnectionState()
    connection.record_error(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    assert connection.error is not None
    assert connection.error.startswith("1/1 brokers are down")


def test_the_reason_of_a_refused_connection_outlasts_later_errors() -> None:
    connection = ConnectionState()
    connection.record_error(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    connection.record_error(KafkaError(KafkaError._SSL, "certificate verify failed"))
    connection.record_error(KafkaError(KafkaError._TRANSPORT, "disconnected"))
    connection.record_error(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    assert connection.error is not None
    assert connection.error.startswith("certificate verify failed")
    assert "ssl.ca.location" in connection.error


def test_an_answer_of_a_broker_clears_the_error() -> None:
    connection = ConnectionState()
    connection.record_error(KafkaError(KafkaError._SSL, "certificate verify failed"))
    connection.clear()
    assert connection.error is None
    connection.record_error(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    assert connection.error is not None
    assert connection.error.startswith("1/1 brokers are down")


def test_errors_are_translated() -> None:
    with pytest.raises(FencedError) as caught, translate_errors("committing", ConnectionState()):
        raise KafkaException(error(KafkaError._FENCED, fatal=True))
    assert isinstance(caught.value.__cause__, KafkaException)


def test_an_error_that_is_raised_during_a_callback_is_translated() -> None:
    first = KafkaException(error(KafkaError._FENCED, fatal=True))
    with pytest.raises(FencedError), translate_errors("flushing", ConnectionState()):
        raise SystemError("returned a result with an exception set") from first


def test_an_error_of_the_library_itself_is_fatal() -> None:
    failed = pytest.raises(FatalError, match="flushing: the client failed: returned NULL")
    with failed, translate_errors("flushing", ConnectionState()):
        raise SystemError("returned NULL without setting an exception")


def test_other_errors_pass() -> None:
    with pytest.raises(ZeroDivisionError), translate_errors("polling", ConnectionState()):
        raise ZeroDivisionError
