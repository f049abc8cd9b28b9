"""Types of values in the configuration that need more than a range."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, ValidationInfo

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
