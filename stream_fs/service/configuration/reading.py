"""From plain data to typed sections; of a section that is wrong, the keys in it that are right.

So what concerns several keys can be checked on those, and one mistake does not hide another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from stream_fs.service.configuration.configuration import Configuration
from stream_fs.service.configuration.problems import Problem, problems_of, unknown
from stream_fs.service.configuration.secrets import Place
from stream_fs.service.configuration.sections import DeclaredView, Section
from stream_fs.service.configuration.values import StreamName

STREAM_NAME: TypeAdapter[str] = TypeAdapter(StreamName)
_STRICT = ConfigDict(strict=True, arbitrary_types_allowed=True)


@dataclass(frozen=True)
class Found:
    """What is right."""

    sections: dict[str, Any] = field(default_factory=dict)
    """The sections without a mistake, by name."""
    keys: dict[str, Any] = field(default_factory=dict)
    """Every value without a mistake, `section.key`; those of views and selector are not here."""
    views: list[dict[str, Any]] = field(default_factory=list)
    """Of every view, the values without a mistake."""
    selector: dict[str, Any] = field(default_factory=dict)
    """As it is written: the selector itself judges it."""


def read(plain: Mapping[str, Any], place: Place) -> tuple[Found, list[Problem]]:
    """What is right, and what is wrong with the rest."""
    names = Configuration.model_fields
    problems = [unknown((name,), names) for name in plain if name not in names]
    found = Found()
    derived = derived_defaults(plain)
    for name in names:
        value = plain.get(name, [] if name == "views" else {})
        if name != "views" and isinstance(value, dict):
            value = {**derived.get(name, {}), **value}
        model = _model(name)
        try:
            value = found.sections[name] = _section(name).validate_python(value, context=place)
        except ValidationError as error:
            problems += problems_of(error, (name,), model.model_fields)
        if name == "views":
            tables = value if isinstance(value, list | tuple) else []
            found.views.extend(_right(model, table, place) for table in tables)
        elif name == "selector":
            found.selector.update(dict(value) if isinstance(value, Section | dict) else {})
        else:
            right = _right(model, value, place)
            found.keys.update({f"{name}.{key}": right[key] for key in right})
    return found, problems


def _right(model: type[Section], table: Section | Any, place: Place) -> dict[str, Any]:
    """What is right in a section, key by key; what is left out has its default."""
    if isinstance(table, Section):
        return dict(table)
    given = table if isinstance(table, dict) else {}
    right: dict[str, Any] = {}
    for name, declared in model.model_fields.items():
        if name in given:
            try:
                right[name] = _key(model, name).validate_python(given[name], context=place)
            except ValidationError:  # told of with its section
                if name == "properties" and isinstance(given[name], dict):
                    right[name] = _right_entries(_key(model, name), given[name], place)
        elif not declared.is_required():
            right[name] = declared.default
    return right


def _right_entries(key: TypeAdapter[Any], table: dict[str, Any], place: Place) -> dict[str, Any]:
    """Of a table within a section, what is right."""
    right: dict[str, Any] = {}
    for name, value in table.items():
        try:
            right |= key.validate_python({name: value}, context=place)
        except ValidationError:  # told of with its section
            continue
    return right


def _model(name: str) -> type[Section]:
    declared: Any = Configuration.model_fields[name].annotation
    model: type[Section] = DeclaredView if name == "views" else declared
    return model


@cache
def _section(name: str) -> TypeAdapter[Any]:
    """What checks one section; it takes longer to make than to use."""
    annotation: Any = Configuration.model_fields[name].rebuild_annotation()
    return TypeAdapter(annotation)


@cache
def _key(model: type[Section], name: str) -> TypeAdapter[Any]:
    """What checks one key."""
    annotation: Any = model.model_fields[name].rebuild_annotation()
    return TypeAdapter(annotation, config=_STRICT)


def derived_defaults(plain: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Defaults that follow from the name of the stream."""
    stream = plain.get("stream")
    name = stream.get("name") if isinstance(stream, dict) else None
    try:
        stem = STREAM_NAME.validate_python(name)
    except ValidationError:
        stem = "stream"  # the name is a problem of its own, and should not make more of them
    return {
        "output": {"topic": f"{stem}.rankings"},
        "dead_letters": {"topic": f"{stem}.dead-letters"},
        "kafka": {"group": stem},
    }
