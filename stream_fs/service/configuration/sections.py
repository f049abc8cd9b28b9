"""The sections of the file, key by key; what each key means is told under it.

The texts under the keys are also the comments of `stream-fs config example`.
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

from stream_fs.kafka.settings import is_secret
from stream_fs.service.configuration.secrets import Place, Secret, resolve

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


def topic_name(name: str) -> str:
    """Refuse what Kafka refuses."""
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
        "should be a whole number from 1 (features per view), a share above 0.0 and up to 1.0, "
        'or "all"'
    )


def _feature_names(value: Any, info: ValidationInfo) -> tuple[str, ...]:
    """An inline list, or the path of a file with one name a line."""
    if isinstance(value, str):
        value = _place(info).text(value).splitlines()
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ValueError("should be a list of texts, or the path of a file with one name a line")
    return tuple(value)


def _property(value: Any, info: ValidationInfo) -> str | int | float | bool | Secret:
    if isinstance(value, Mapping):
        return resolve(value, _place(info))
    if isinstance(value, str | int | float | bool | Secret):
        return value
    raise ValueError('should be a text, a number, true or false, {env = "NAME"} or {file = "path"}')


def _hide(properties: dict[str, Property]) -> dict[str, Property]:
    return {
        name: value if isinstance(value, Secret) or not is_secret(name) else Secret(str(value))
        for name, value in properties.items()
    }


def _place(info: ValidationInfo) -> Place:
    assert isinstance(info.context, Place)
    return info.context


def as_tuple(value: Any) -> Any:
    """TOML has lists only; everything else here is strict about types."""
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
Format = Literal["msgpack", "json"]


class Section(BaseModel):
    """A table of the file: its types are meant as they are written, and it has no other keys."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        use_attribute_docstrings=True,
        arbitrary_types_allowed=True,
        # Nothing that was written may leak into an error unless we put it there.
        hide_input_in_errors=True,
    )


class Stream(Section):
    """What comes in."""

    name: StreamName
    """Name of the stream: in rankings, metrics and logs, and the root of other names."""
    topics: TopicNames
    """Input topics."""
    format: Format = "msgpack"
    """Format of the input records: msgpack or json."""
    start: Literal["earliest", "latest"] = "earliest"
    """Where a partition begins that has no state yet: earliest or latest."""


class DeclaredView(Section):
    """A view of the records, one table for each."""

    name: Name
    """Name of the view in the records."""
    dimension: Count
    """Number of its features."""
    dtype: Literal["float32", "float64"] = "float32"
    """The floats of packed values: float32 or float64."""
    transform: Literal["minmax", "unit", "none"] | None = None
    """Scaling: minmax, unit (counts, text) or none; left out, the preset decides."""
    names: FeatureNames | None = None
    """Names of the features: a list, or the path of a file with one name a line."""
    shape: Shape | None = None
    """How the features lie in an image or a grid, e.g. [16, 15], for pictures of a ranking."""


class Selector(Section):
    """The method; any other parameter of stream_fs.selector.Params may be set here by its name."""

    # Checked by the selector itself, see checks.py.
    model_config = ConfigDict(extra="allow")

    clusters: Any
    """Number of clusters K."""
    preset: Any = "default"
    """default, paper or classical."""
    seed: Any = 0
    """Of everything that is random."""


class Chunk(Section):
    """How the stream is cut."""

    records: Count = 500
    """Good records in a chunk; the first has at least 20 per cluster."""
    max_span: Seconds | None = None
    """Seconds between the oldest and the newest record that close a chunk early."""


class Checkpoint(Section):
    """How often the model is saved whole; where to continue is saved with every transaction."""

    every_chunks: Count = 10
    """Chunks between snapshots, and so the most that is computed again after a crash."""


class Merge(Section):
    """The ranking of the whole stream, from the models of its partitions.

    It is published while there is more than one partition: with one, its ranking is the stream's.
    A model is in it as of its last snapshot, so checkpoint.every_chunks says how often it advances.
    A snapshot is the whole model: it is written once, and read once by the member that merges.
    """

    enabled: bool = True
    """Whether merged rankings are published."""
    every_seconds: Seconds = 10.0
    """Seconds between two merged rankings, at least."""


class Output(Section):
    """Where rankings go."""

    topic: TopicName
    """Topic of the rankings; left out, <stream>.rankings."""
    top: Top = "all"
    """Features per view: a count (50), a share of all features (0.1), or "all"."""
    format: Format = "json"
    """Format of the rankings: json or msgpack."""
    linger_seconds: Annotated[float, Field(ge=0, le=10)] = 0.5
    """Seconds that rankings of a backlog wait for each other, to share a transaction; 0: none."""


class DeadLetters(Section):
    """What happens to records that cannot be used."""

    topic: TopicName
    """Topic of the dead letters; left out, <stream>.dead-letters."""
    policy: Literal["dead_letter", "skip", "fail"] = "dead_letter"
    """dead_letter publishes them, skip only counts them, fail stops at the first."""
    max_ratio: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Share of bad records since the last chunk above which the service stops."""
    tolerated: Annotated[int, Field(ge=0)] = 100
    """Fewer bad records than this never stop it."""
    max_open: Count = 10_000
    """Bad records waiting for their chunk above which it stops in any case."""
    max_open_bytes: Count = 32_000_000
    """Bytes of a chunk's dead letters that are published whole; large ones behind are shortened."""


class State(Section):
    """Where the models are kept."""

    topic: StatePattern = "{topic}.state"
    """Name of the state topic, one for each input topic; streams may share it."""


class Limits(Section):
    """What a record may at most have; larger ones are bad records."""

    record_bytes: Count = 1_000_000
    """Bytes of a record."""
    views: Count = 256
    """Views in a record."""


class Kafka(Section):
    """The broker."""

    bootstrap: Annotated[str, Field(min_length=1)]
    """host:port of one or more brokers, with commas between."""
    group: Name
    """Consumer group, also the root of the transactional ids; left out, the stream's name."""
    protocol: Literal["eager", "cooperative", "consumer"] = "cooperative"
    """How partitions are shared: eager, cooperative, or consumer (KIP-848, Kafka 4.0 or newer)."""
    transaction_timeout: Seconds = 60.0
    """Seconds after which the broker voids an open transaction."""
    call_timeout: Seconds = 30.0
    """Seconds that one call waits for the broker; at the start, until it counts as unreachable."""
    largest_message: Annotated[int, Field(ge=1, le=999_000_000)] = 1_000_000
    """Bytes of the largest record or ranking that the topics allow, and of a part of a snapshot."""
    properties: Properties = {}
    """Any librdkafka property; a secret as {env = "NAME"} or {file = "path"}."""


class Service(Section):
    """The process."""

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address of the status page (/), /metrics, /healthz and /readyz; 0.0.0.0 is every address."""
    port: Annotated[int, Field(ge=0, le=65535)] = 9108
    """Their port; 0 takes any that is free."""
    grace_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 20.0
    """Seconds that an orderly end may take."""
    watchdog_seconds: Annotated[float, Field(ge=10, allow_inf_nan=False)] = 120.0
    """Seconds without progress after which the process ends itself; above every time limit."""


class Log(Section):
    """The log, on standard error."""

    format: Literal["text", "json"] = "text"
    """text or json, one line for each event."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least level that is written: debug, info, warning or error."""
