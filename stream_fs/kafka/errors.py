"""What the client library says, in the words of our error tree.

A refused connection only times out in the call that failed; its reason arrives separately, through
`error_cb`. `ConnectionState` keeps it, so that it can be shown.
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
from stream_fs.kafka.settings import ClientSettings, Property

# The producer is void, and a new one that takes over can go on: another took over, or the broker
# voided the transaction after its timeout, see `KafkaPublisher`.
_FENCED: Final = {
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
}
# Likewise, but nobody else has taken over, for of that the broker would tell first: it knows of no
# transaction that could be ended, as after requests that were lost, or it has forgotten the
# producer after a week without one.
_UNKNOWN: Final = {
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
    "the clocks of this machine and of the broker differ by more than the topic allows: set them "
    "right, or set message.timestamp.type=LogAppendTime on the topic"
)
_SIZE: Final = "raise max.message.bytes of the topic and kafka.largest_message"
_COMPRESSED: Final = (
    "raise receive.message.max.bytes in kafka.properties if the decompressed record is larger, or "
    "move past it with "
    "`stream-fs checkpoint reset --topic T --partition P --keep-model --to-offset N`"
)

# Trying again does not help: what the operator has to change.
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
        "another process has joined the group with the same group.instance.id, and goes on in the "
        "place of this one: give every process one of its own"
    ),
    KafkaError.UNRELEASED_INSTANCE_ID: (
        "a process with the same group.instance.id is in the group: give every process one of its "
        "own; if that process was killed, the name is free after the session timeout "
        "(group.consumer.session.timeout.ms of the broker)"
    ),
    KafkaError.INVALID_REPLICATION_FACTOR: "lower the replication factor, or add brokers",
    KafkaError._INVALID_ARG: "check kafka.properties",
}

# The client gave up waiting, or lost its connection; some of these do not call themselves
# retriable.
_PASSING: Final = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,  # also said by a broker that has just started
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError._WAIT_COORD,
    KafkaError._NOENT,  # a partition has no leader at this moment
    KafkaError._WAIT_CACHE,
    KafkaError.REQUEST_TIMED_OUT,
    # Said by a broker that has just started, or when leaders move; an admin client that knows
    # only how it was before does not ask again by itself.
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

# Why a connection is refused.
_REFUSED: Final = {
    KafkaError._AUTHENTICATION: _CREDENTIALS,
    KafkaError._SSL: _CERTIFICATES,
}
_UNREACHABLE: Final = {KafkaError._TRANSPORT, KafkaError._RESOLVE}


class ConnectionState:
    """Why a client has no connection, as far as it said."""

    def __init__(self) -> None:
        self._down = False
        self._said = ""
        self._advice = _ADDRESS

    @property
    def error(self) -> str | None:
        """None when there is a connection."""
        return f"{self._said} ({self._advice})" if self._down else None

    @property
    def of_certificates(self) -> bool:
        """Whether TLS is the reason."""
        return self._down and self._advice == _CERTIFICATES

    def note(self, error: KafkaError) -> None:
        """Remember an error that `error_cb` reports."""
        code = error.code()
        if code == KafkaError._ALL_BROKERS_DOWN:
            self._down = True
            self._said = self._said or error.str()
        elif (advice := _REFUSED.get(code)) is not None:
            self._down = True
            self._said, self._advice = error.str(), advice
        elif code in _UNREACHABLE and self._advice == _ADDRESS:
            # One connection of several; it says most when all brokers turn out to be down.
            self._said = error.str()

    def unanswered(self, error: KafkaError) -> None:
        """Remember that a question got no answer, whatever `error_cb` reports."""
        self._down = True
        self._said = self._said or error.str()

    def clear(self) -> None:
        """Forget it: a broker has answered."""
        self._down = False
        self._said = ""
        self._advice = _ADDRESS


def classify(
    error: KafkaError,
    doing: str,
    connection: ConnectionState | None = None,
    otherwise: type[TransportError] | None = None,
) -> TransportError:
    """The error of our tree that says what can be done.

    `otherwise` is the class of an error that is neither fenced nor permanent; without it the
    client's own word decides, and what it calls nothing is fatal.
    """
    text = f"{doing}: {error.str()} [{error.name()}]"
    code = _cause(error)
    if code in _FENCED | _UNKNOWN:
        return FencedError(text, outcome_unknown=code in _UNKNOWN)
    if (advice := _PERMANENT.get(code)) is not None:
        return FatalError(f"{text}; {advice}")
    if error.fatal():
        return FatalError(text)
    if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
        text = f"{text}; {_MISSING}"
    if code == KafkaError.INVALID_TIMESTAMP:
        text = f"{text}; {_CLOCK}"
    if connection is not None and connection.error is not None:
        text = f"{text}; {connection.error}"
    if otherwise is not None:
        return otherwise(text)
    if error.txn_requires_abort():
        return AbortableError(text)
    if error.retriable() or code in _PASSING:
        return RetriableError(text)
    return FatalError(text)


def _cause(error: KafkaError) -> int:
    """The error's code; for `_FATAL`, the code of the cause that its text names."""
    code: int = error.code()
    if code != KafkaError._FATAL:
        return code
    return next((cause for cause in _PERMANENT if KafkaError(cause).str() in error.str()), code)


@contextmanager
def translate_errors(
    doing: str,
    connection: ConnectionState | None = None,
    otherwise: type[TransportError] | None = None,
) -> Iterator[None]:
    """Let only errors of our tree out of a client call; see `classify`.

    A fatal error is raised out of whatever call serves the client's events; should a callback run
    in the same moment, Python reports a SystemError instead, which may name the error as its cause.
    """
    try:
        yield
    except (KafkaException, SystemError) as exception:
        error = _kafka_error(exception)
        if error is None:
            raise FatalError(f"{doing}: the client failed: {exception}") from exception
        raise classify(error, doing, connection, otherwise) from exception


def _kafka_error(exception: BaseException | None) -> KafkaError | None:
    """The client's error within an exception or what caused it."""
    while exception is not None:
        if isinstance(exception, KafkaException) and isinstance(exception.args[0], KafkaError):
            return exception.args[0]
        exception = exception.__cause__ or exception.__context__
    return None


_SECONDS: Final = 5.0
"""For a connection and its handshake."""
_MISMATCH: Final = {62, 64}  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
_TIME: Final = {9, 10}  # X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED


def diagnose_certificate(settings: ClientSettings) -> str | None:
    """What is wrong with the first certificate that is refused, and what to change.

    None where nothing is found. Asks with a handshake of its own, without a login, under the names
    in the configuration.
    """
    try:
        context = _context(settings.properties)
    except (OSError, ssl.SSLError):  # a file that the client itself has complained of
        return None
    for address in settings.bootstrap.split(","):
        host, _, port = address.strip().rpartition("://")[2].rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), _SECONDS) as plain:
                context.wrap_socket(plain, server_hostname=host.strip("[]")).close()
        except ssl.SSLCertVerificationError as refusal:
            return f"{address.strip()}: {refusal.verify_message.rstrip('.')}: {_advice(refusal)}"
        except (OSError, ValueError):  # a failure other than a certificate
            continue
    return None


def _context(properties: Mapping[str, Property]) -> ssl.SSLContext:
    """What the client trusts, as far as it is told by the properties that say it usually."""
    place, text = properties.get("ssl.ca.location"), properties.get("ssl.ca.pem")
    return ssl.create_default_context(
        cafile=None if place is None else str(place), cadata=None if text is None else str(text)
    )


def _advice(refusal: ssl.SSLCertVerificationError) -> str:
    if refusal.verify_code in _MISMATCH:
        return "name the broker in kafka.bootstrap as its certificate does"
    if refusal.verify_code in _TIME:
        return "renew the broker's certificate, or set the clock of this machine"
    return "ssl.ca.location must name the authority that has signed the broker's certificate"
