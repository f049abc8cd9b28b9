"""Translation of client errors into the package's error tree, with advice for the operator.

A call on a refused connection only times out; the reason arrives separately, through `error_cb`
(librdkafka #950, #4656). `ConnectionState` keeps it for error messages and readiness checks.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from confluent_kafka import KafkaError, KafkaException

from stream_fs.errors import (
    AbortableError,
    FatalError,
    FencedError,
    RetriableError,
    TransportError,
)
from stream_fs.kafka import librdkafka
from stream_fs.kafka.settings import ClientSettings, Property

# The producer is void; a new one can acquire the transactional id. Another owner has acquired it,
# or the broker has aborted the transaction after its timeout, see `KafkaPublisher`.
_FENCED: Final = {
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
}
# Likewise, but without another owner, as the broker would have reported that fencing first: it
# knows of no transaction to end, as after lost requests (librdkafka #3297), or has forgotten the
# producer after a week without a transaction.
_OUTCOME_UNKNOWN: Final = {
    KafkaError.INVALID_PRODUCER_ID_MAPPING,
    KafkaError.INVALID_TXN_STATE,
}

_CREDENTIALS: Final = (
    "check security.protocol, sasl.mechanism, sasl.username and sasl.password in kafka.properties"
)
_CERTIFICATES: Final = (
    "check security.protocol and ssl.ca.location in kafka.properties, the host names in "
    "kafka.bootstrap, and the broker's certificate"
)
_ADDRESS: Final = "check kafka.bootstrap, and security.protocol in kafka.properties"
_TOPIC_RIGHTS: Final = "give this user the right to read and write the topic"
_MISSING: Final = "create the topic, for example with `stream-fs topics create`"
_CLOCK: Final = (
    "the clocks of this machine and of the broker differ by more than the topic allows: "
    "synchronise them, or set message.timestamp.type=LogAppendTime on the topic"
)
_SIZE: Final = "raise max.message.bytes of the topic and kafka.largest_message"
_COMPRESSED: Final = (
    "raise receive.message.max.bytes in kafka.properties if the decompressed record is larger, or "
    "move past it with "
    "`stream-fs checkpoint reset --topic T --partition P --keep-model --to-offset N`"
)

# Permanent errors, and what the operator has to change.
_PERMANENT: Final = {
    KafkaError._AUTHENTICATION: _CREDENTIALS,
    KafkaError.SASL_AUTHENTICATION_FAILED: _CREDENTIALS,
    KafkaError.UNSUPPORTED_SASL_MECHANISM: "check sasl.mechanism in kafka.properties",
    KafkaError._SSL: _CERTIFICATES,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: _TOPIC_RIGHTS,
    KafkaError.GROUP_AUTHORIZATION_FAILED: "give this user the right to read the consumer group",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (
        "give this user the right to write transactional ids that begin with the group's name"
    ),
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "give this user the right to write idempotently",
    KafkaError.INVALID_TRANSACTION_TIMEOUT: (
        "lower kafka.transaction_timeout, or raise the broker's transaction.max.timeout.ms"
    ),
    KafkaError.MSG_SIZE_TOO_LARGE: _SIZE,
    KafkaError.RECORD_LIST_TOO_LARGE: _SIZE,
    KafkaError._BAD_COMPRESSION: _COMPRESSED,
    KafkaError._UNKNOWN_TOPIC: _MISSING,
    KafkaError._UNKNOWN_PARTITION: _MISSING,
    KafkaError.INCONSISTENT_GROUP_PROTOCOL: (
        "stop the members of the group that have another kafka.protocol"
    ),
    KafkaError.INVALID_SESSION_TIMEOUT: (
        "set session.timeout.ms in kafka.properties to what the broker accepts "
        "(group.min.session.timeout.ms to group.max.session.timeout.ms)"
    ),
    KafkaError.FENCED_INSTANCE_ID: (
        "another process has joined the group with the same group.instance.id and has replaced "
        "this one: give every process its own"
    ),
    KafkaError.UNRELEASED_INSTANCE_ID: (
        "a process with the same group.instance.id is in the group: give every process its own; "
        "if that process was killed, the name is free after the session timeout "
        "(group.consumer.session.timeout.ms of the broker)"
    ),
    KafkaError.INVALID_REPLICATION_FACTOR: "lower the replication factor, or add brokers",
    KafkaError._INVALID_ARG: "check kafka.properties",
}

# Timeouts, lost connections and moving leaders; the client does not flag all of them as retriable.
_RETRIABLE: Final = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,  # also reported by a broker that has just started
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError._WAIT_COORD,
    KafkaError._NOENT,  # a partition has no leader at present
    KafkaError._WAIT_CACHE,
    KafkaError.REQUEST_TIMED_OUT,
    # Reported by a broker that has just started, or when leaders move; an admin client with old
    # metadata does not retry these itself.
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.NOT_CONTROLLER,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
}

# Reasons for which a connection is refused.
_REFUSED: Final = {
    KafkaError._AUTHENTICATION: _CREDENTIALS,
    KafkaError._SSL: _CERTIFICATES,
}
_UNREACHABLE: Final = {KafkaError._TRANSPORT, KafkaError._RESOLVE}


class ConnectionState:
    """Whether a client has a connection, and the reason where it has none."""

    def __init__(self) -> None:
        self._down = False
        self._reason = ""
        self._advice = _ADDRESS

    @property
    def error(self) -> str | None:
        """Why there is no connection, with advice; None when there is one."""
        return f"{self._reason} ({self._advice})" if self._down else None

    @property
    def is_tls_failure(self) -> bool:
        """Whether a failed TLS handshake is the reason."""
        return self._down and self._advice == _CERTIFICATES

    def record_error(self, error: KafkaError) -> None:
        """Record an error that `error_cb` reports."""
        code = error.code()
        if code == KafkaError._ALL_BROKERS_DOWN:
            self._down = True
            self._reason = self._reason or error.str()
        elif (advice := _REFUSED.get(code)) is not None:
            self._down = True
            self._reason, self._advice = error.str(), advice
        elif code in _UNREACHABLE and self._advice == _ADDRESS:
            # One connection of several; the most specific reason once all brokers are down.
            self._reason = error.str()

    def record_timeout(self, error: KafkaError) -> None:
        """Record a request without an answer, whatever `error_cb` reports."""
        self._down = True
        self._reason = self._reason or error.str()

    def clear(self) -> None:
        """Record an answer of a broker."""
        self._down = False
        self._reason = ""
        self._advice = _ADDRESS


def classify(
    error: KafkaError,
    doing: str,
    connection: ConnectionState,
    otherwise: type[TransportError] | None = None,
) -> TransportError:
    """The error of the package's tree that says how to react.

    `otherwise` is the class of an error that is neither fenced nor permanent; without it the
    client's flags decide, and an error without flags is fatal.
    """
    text = f"{doing}: {error.str()} [{error.name()}]"
    code = librdkafka.cause_code(error, _PERMANENT)
    if code in _FENCED | _OUTCOME_UNKNOWN:
        return FencedError(text, outcome_unknown=code in _OUTCOME_UNKNOWN)
    if (advice := _PERMANENT.get(code)) is not None:
        return FatalError(f"{text}; {advice}")
    if error.fatal():
        return FatalError(text)
    if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
        text = f"{text}; {_MISSING}"
    if code == KafkaError.INVALID_TIMESTAMP:
        text = f"{text}; {_CLOCK}"
    if connection.error is not None:
        text = f"{text}; {connection.error}"
    if otherwise is not None:
        return otherwise(text)
    if error.txn_requires_abort():
        return AbortableError(text)
    if error.retriable() or code in _RETRIABLE:
        return RetriableError(text)
    return FatalError(text)


@contextmanager
def translate_errors(
    doing: str,
    connection: ConnectionState,
    otherwise: type[TransportError] | None = None,
) -> Iterator[None]:
    """Translate the errors of client calls; see `classify`.

    A fatal error is raised by any call that serves the client's events, as a SystemError where a
    callback runs at the same time, see `librdkafka.underlying_error`.
    """
    try:
        yield
    except (KafkaException, SystemError) as exception:
        error = librdkafka.underlying_error(exception)
        if error is None:
            raise FatalError(f"{doing}: the client failed: {exception}") from exception
        raise classify(error, doing, connection, otherwise) from exception


_HANDSHAKE_SECONDS: Final = 5.0
"""Timeout of a connection and its handshake."""
_NAME_MISMATCH: Final = {62, 64}  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
_NOT_VALID_NOW: Final = {9, 10}  # X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED


def diagnose_certificate(settings: ClientSettings) -> str | None:
    """Why the first invalid certificate is refused and what to change; None if all are valid.

    Does a TLS handshake of its own with every configured address, without a login.
    """
    try:
        context = _context(settings.properties)
    except (OSError, ssl.SSLError):  # the client has reported that file itself
        return None
    for address in settings.bootstrap.split(","):
        host, _, port = address.strip().rpartition("://")[2].rpartition(":")
        try:
            with socket.create_connection(
                (host.strip("[]"), int(port)), _HANDSHAKE_SECONDS
            ) as plain:
                context.wrap_socket(plain, server_hostname=host.strip("[]")).close()
        except ssl.SSLCertVerificationError as refusal:
            return f"{address.strip()}: {refusal.verify_message.rstrip('.')}: {_advice(refusal)}"
        except (OSError, ValueError):  # a failure other than a certificate
            continue
    return None


def _context(properties: Mapping[str, Property]) -> ssl.SSLContext:
    """The authorities that the client trusts, from the usual properties."""
    place, text = properties.get("ssl.ca.location"), properties.get("ssl.ca.pem")
    return ssl.create_default_context(
        cafile=None if place is None else str(place), cadata=None if text is None else str(text)
    )


def _advice(refusal: ssl.SSLCertVerificationError) -> str:
    if refusal.verify_code in _NAME_MISMATCH:
        return "use the name in the broker's certificate in kafka.bootstrap"
    if refusal.verify_code in _NOT_VALID_NOW:
        return "renew the broker's certificate, or set the clock of this machine"
    return "ssl.ca.location must name the authority that has signed the broker's certificate"
