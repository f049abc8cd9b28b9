"""The sections of the configuration file, key by key.

The docstrings under the keys are also the comments of `stream-fs config example`. Every default
is written once: here, or in the class that is also used without a configuration (`wire.Limits`,
`kafka.ClientSettings`), from which it is read here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationInfo,
)

from stream_fs.kafka.settings import ClientSettings, is_secret
from stream_fs.pipeline.settings import InputStart, Policy
from stream_fs.selector.parameters import Transform
from stream_fs.service.configuration.secrets import Place, Secret, resolve
from stream_fs.wire import DEFAULT_FORMAT, FORMATS, RankingFormat, RecordFormat
from stream_fs.wire.declared import Dtype, Limits

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


def topic_name(name: str) -> str:
    """The name, if Kafka accepts it."""
    if not _TOPIC.fullmatch(name) or name in (".", ".."):
        raise ValueError("should be 1 to 249 letters, digits, '.', '_' or '-'")
    return name


def _state_pattern(pattern: str) -> str:
    if pattern.count("{topic}") != 1:
        raise ValueError("should contain {topic} once, for the name of the input topic")
    topic_name(pattern.replace("{topic}", "topic"))
    return pattern


def _top(value: Any) -> int | float | Literal["all"]:
    """A count (whole number), a share (number with a point) or `all`."""
    if value == "all":
        return "all"
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    if isinstance(value, float) and math.isfinite(value) and 0 < value <= 1:
        return value
    raise ValueError(
        "should be a whole number of at least 1 (features per view), a share above 0.0 and up to "
        '1.0, or "all"'
    )


def _feature_names(value: Any, info: ValidationInfo) -> tuple[str, ...]:
    """The names in a list, or those in a file with one name per line."""
    if isinstance(value, str):
        value = _place(info).text(value).splitlines()
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ValueError(
            "should be a list of strings, or the path of a file with one name per line"
        )
    return tuple(value)


def _property(value: Any, info: ValidationInfo) -> str | int | float | bool | Secret:
    if isinstance(value, Mapping):
        return resolve(value, _place(info))
    if isinstance(value, str | int | float | bool | Secret):
        return value
    raise ValueError(
        'should be a string, a number, true or false, {env = "NAME"} or {file = "path"}'
    )


def _hide(properties: dict[str, Property]) -> dict[str, Property]:
    return {
        name: value if isinstance(value, Secret) or not is_secret(name) else Secret(str(value))
        for name, value in properties.items()
    }


def _place(info: ValidationInfo) -> Place:
    assert isinstance(info.context, Place)
    return info.context


def as_tuple(value: Any) -> Any:
    """A tuple in place of a list, the only sequence that TOML has; all other types are strict."""
    return tuple(value) if isinstance(value, list) else value


Name = Annotated[str, Field(min_length=1, max_length=200)]
TopicName = Annotated[str, AfterValidator(topic_name)]
StreamName = Annotated[str, Field(strict=True, max_length=200), AfterValidator(topic_name)]
TopicNames = Annotated[tuple[TopicName, ...], BeforeValidator(as_tuple), Field(min_length=1)]
StatePattern = Annotated[str, AfterValidator(_state_pattern)]
Top = Annotated[int | float | Literal["all"], PlainValidator(_top)]
FeatureNames = Annotated[tuple[str, ...], PlainValidator(_feature_names)]
Shape = Annotated[
    tuple[Annotated[int, Field(ge=1)], ...], BeforeValidator(as_tuple), Field(min_length=1)
]
Property = Annotated[str | int | float | bool | Secret, PlainValidator(_property)]
Properties = Annotated[dict[str, Property], AfterValidator(_hide)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


Count = Annotated[int, Field(ge=1)]

_RECORD_LIMITS = Limits()
_CLIENTS = ClientSettings("unknown", "unknown")


class Section(BaseModel):
    """A table of the file: strict types, and no unknown keys."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        use_attribute_docstrings=True,
        arbitrary_types_allowed=True,
        # Messages quote a value only where `problems.shown` allows it: it may be a secret.
        hide_input_in_errors=True,
    )


class StreamSection(Section):
    """The input."""

    name: StreamName
    """Name of the stream in rankings, metrics and logs; also the prefix of default names."""
    topics: TopicNames
    """Input topics."""
    format: RecordFormat = Field(
        DEFAULT_FORMAT, description=f"Format of the input records: {' or '.join(FORMATS)}."
    )
    start: InputStart = "earliest"
    """Where a partition without state starts: earliest or latest."""


class ViewSection(Section):
    """A view of the records; one table per view."""

    name: Name
    """Name of the view in the records."""
    dimension: Count
    """Number of features."""
    dtype: Dtype = "float32"
    """Type of packed values: float32 or float64."""
    transform: Transform | None = None
    """Scaling: minmax, unit (for counts and text) or none; by default, that of the preset."""
    names: FeatureNames | None = None
    """Names of the features: a list, or the path of a file with one name per line."""
    shape: Shape | None = None
    """Rows and columns of features that form an image or a grid, for heat maps; e.g. [16, 15]."""


class SelectorSection(Section):
    """The selector; any other parameter of stream_fs.selector.Params can be set here by name."""

    # The selector checks these itself, see `validation`.
    model_config = ConfigDict(extra="allow")

    clusters: Any
    """Number of clusters K, for example the number of classes that are expected."""
    preset: Any = "default"
    """Preset of all other parameters: default, paper or classical."""
    seed: Any = 0
    """Seed of all random numbers."""


class ChunkSection(Section):
    """How the stream is divided into chunks."""

    records: Count = 500
    """Valid records per chunk; the first chunk has at least 20 per cluster."""
    max_span: Seconds | None = None
    """Maximum seconds between the timestamps of a chunk; a record beyond starts the next chunk."""


class CheckpointSection(Section):
    """Snapshots of the model. The input offset is saved with every transaction."""

    every_chunks: Count = 10
    """Chunks between snapshots; at most this many are replayed after a crash."""


class MergeSection(Section):
    """The ranking of the whole stream, merged from the models of its partitions.

    Published for streams of several partitions. It contains each model as of its last snapshot,
    so checkpoint.every_chunks also determines how often it advances.
    """

    enabled: bool = True
    """Whether to publish merged rankings."""
    every_seconds: Seconds = 10.0
    """Minimum number of seconds between two merged rankings."""


class OutputSection(Section):
    """The rankings."""

    topic: TopicName
    """Topic of the rankings; by default <stream>.rankings."""
    top: Top = "all"
    """Published features per view: a count (50), a share of all features (0.1), or "all"."""
    format: RankingFormat = "json"
    """Format of the rankings: json or msgpack."""
    linger_seconds: Annotated[float, Field(ge=0, le=10)] = 0.5
    """Maximum seconds that rankings of a backlog wait to share a transaction; 0 disables this."""


class DeadLettersSection(Section):
    """Handling of bad records."""

    topic: TopicName
    """Topic of the dead letters; by default <stream>.dead-letters."""
    policy: Policy = "dead_letter"
    """dead_letter publishes bad records, skip only counts them, fail stops at the first."""
    max_ratio: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Share of bad records since the last chunk above which the service stops."""
    tolerated: Annotated[int, Field(ge=0)] = 100
    """Number of bad records below which the service never stops."""
    max_open: Count = 10_000
    """Number of bad records in an open chunk above which the service always stops."""
    max_open_bytes: Count = 32_000_000
    """Bytes of dead letters per chunk up to which none is shortened; then large ones are."""


class StateSection(Section):
    """The topics of the saved state."""

    topic: StatePattern = "{topic}.state"
    """Name of the state topic of each input topic; streams can share it."""


class LimitsSection(Section):
    """Limits of a record; a larger one is a bad record."""

    record_bytes: Count = _RECORD_LIMITS.record_bytes
    """Maximum bytes of a record."""
    views: Count = _RECORD_LIMITS.views
    """Maximum number of views in a record."""


class KafkaSection(Section):
    """The Kafka cluster."""

    bootstrap: Annotated[str, Field(min_length=1)]
    """Addresses of one or more brokers, host:port, separated by commas."""
    group: Name
    """Consumer group, also the prefix of transactional ids; by default the name of the stream."""
    protocol: Literal["eager", "cooperative", "consumer"] = "cooperative"
    """Rebalance protocol: eager, cooperative, or consumer (KIP-848, Kafka 4.0 or newer)."""
    transaction_timeout: Seconds = _CLIENTS.transaction_timeout
    """Seconds after which the broker aborts an open transaction."""
    call_timeout: Seconds = _CLIENTS.timeout
    """Timeout of a call to the broker, in seconds; also that of the first connection."""
    largest_message: Annotated[int, Field(ge=1, le=999_000_000)] = _CLIENTS.largest_message
    """Maximum bytes of a message: a record, a ranking, or a part of a snapshot."""
    properties: Properties = {}
    """Further librdkafka properties; a secret as {env = "NAME"} or {file = "path"}."""


class ServiceSection(Section):
    """The service process and its HTTP port."""

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Listening address of the status page, /metrics, /healthz and /readyz; 0.0.0.0 for all."""
    port: Annotated[int, Field(ge=0, le=65535)] = 9108
    """Listening port; 0 for any free one."""
    grace_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 20.0
    """Maximum seconds of a graceful shutdown."""
    watchdog_seconds: Annotated[float, Field(ge=10, allow_inf_nan=False)] = 120.0
    """Seconds without progress after which the process exits; longer than every timeout."""


class LogSection(Section):
    """The log, on standard error."""

    format: Literal["text", "json"] = "text"
    """Format of the lines: text or json."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """Lowest level that is logged: debug, info, warning or error."""
