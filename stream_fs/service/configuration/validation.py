"""Validation: key by key, then across keys, then by the selector and the client library.

A check across keys runs only if these are valid by themselves, so that every mistake is reported,
each once.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, partial
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from stream_fs.errors import InvalidParameter
from stream_fs.kafka.librdkafka import property_error
from stream_fs.kafka.settings import ClientSettings, Property, Rebalance, is_secret, wrong_addresses
from stream_fs.selector import Params, View, params
from stream_fs.service.configuration import sections
from stream_fs.service.configuration.configuration import (
    REBALANCE,
    Configuration,
    ranking_problem,
    revealed,
    selector_view,
    state_problem,
)
from stream_fs.service.configuration.problems import (
    ConfigurationProblem,
    Path,
    problems_of,
    shown,
    unknown,
)
from stream_fs.service.configuration.secrets import Place, Secret, redacted
from stream_fs.service.configuration.sections import Section, StreamName, ViewSection, topic_name

STREAM_NAME: TypeAdapter[str] = TypeAdapter(StreamName)
_STRICT = ConfigDict(strict=True, arbitrary_types_allowed=True)


@dataclass(frozen=True)
class ValidValues:
    """The valid part of a configuration."""

    sections: dict[str, Any] = field(default_factory=dict)
    """Valid sections by name."""
    keys: dict[str, Any] = field(default_factory=dict)
    """Valid values by `section.key`, except those of views and selector."""
    views: list[dict[str, Any]] = field(default_factory=list)
    """The valid values of each view."""
    selector: dict[str, Any] = field(default_factory=dict)
    """The section as it stands: the selector validates it."""


def read(plain: Mapping[str, Any], place: Place) -> tuple[ValidValues, list[ConfigurationProblem]]:
    """Validate each key; returns the valid values, and the problems of the others."""
    names = Configuration.model_fields
    problems = [unknown((name,), names) for name in plain if name not in names]
    found = ValidValues()
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
            found.views.extend(_valid(model, table, place) for table in tables)
        elif name == "selector":
            found.selector.update(dict(value) if isinstance(value, Section | dict) else {})
        else:
            valid = _valid(model, value, place)
            found.keys.update({f"{name}.{key}": valid[key] for key in valid})
    return found, problems


def _valid(model: type[Section], table: Section | Any, place: Place) -> dict[str, Any]:
    """The valid keys of a section; absent keys have their default."""
    if isinstance(table, Section):
        return dict(table)
    given = table if isinstance(table, dict) else {}
    valid: dict[str, Any] = {}
    for name, declared in model.model_fields.items():
        if name in given:
            try:
                valid[name] = _key(model, name).validate_python(given[name], context=place)
            except ValidationError:  # reported with its section
                if name == "properties" and isinstance(given[name], dict):
                    valid[name] = _valid_entries(_key(model, name), given[name], place)
        elif not declared.is_required():
            valid[name] = declared.default
    return valid


def _valid_entries(key: TypeAdapter[Any], table: dict[str, Any], place: Place) -> dict[str, Any]:
    """The valid entries of a table within a section."""
    valid: dict[str, Any] = {}
    for name, value in table.items():
        try:
            valid |= key.validate_python({name: value}, context=place)
        except ValidationError:  # reported with its section
            continue
    return valid


def _model(name: str) -> type[Section]:
    declared: Any = Configuration.model_fields[name].annotation
    model: type[Section] = ViewSection if name == "views" else declared
    return model


@cache
def _section(name: str) -> TypeAdapter[Any]:
    """The validator of a section; cached, since building it takes longer than using it."""
    annotation: Any = Configuration.model_fields[name].rebuild_annotation()
    return TypeAdapter(annotation)


@cache
def _key(model: type[Section], name: str) -> TypeAdapter[Any]:
    """The validator of a key."""
    annotation: Any = model.model_fields[name].rebuild_annotation()
    return TypeAdapter(annotation, config=_STRICT)


def derived_defaults(plain: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Defaults derived from the name of the stream."""
    stream = plain.get("stream")
    name = stream.get("name") if isinstance(stream, dict) else None
    try:
        stem = STREAM_NAME.validate_python(name)
    except ValidationError:
        stem = "stream"  # the name is reported by itself, and must not cause further problems
    return {
        "output": {"topic": f"{stem}.rankings"},
        "dead_letters": {"topic": f"{stem}.dead-letters"},
        "kafka": {"group": stem},
    }


_STAND_IN = View("view", 1)


def all_problems(found: ValidValues) -> list[ConfigurationProblem]:
    """The problems across keys, and those that the selector and the client library report."""
    checks: tuple[tuple[Callable[..., Iterator[ConfigurationProblem]], tuple[str, ...]], ...] = (
        (partial(_view_limit, len(found.views)), ("limits.views",)),
        (_record_size, ("limits.record_bytes", "kafka.largest_message")),
        (_transaction_patience, ("service.watchdog_seconds", "kafka.transaction_timeout")),
        (_call_patience, ("service.watchdog_seconds", "kafka.call_timeout")),
        (_grace, ("service.watchdog_seconds", "service.grace_seconds")),
        (_bootstrap, ("kafka.bootstrap",)),
        (_group, ("kafka.group",)),
        (_properties, ("kafka.properties",)),
        (_broker_decides, ("kafka.properties", "kafka.protocol")),
    )
    problems = [
        *_views(found.views),
        *(
            problem
            for check, needed in checks
            if all(key in found.keys for key in needed)
            for problem in check(*(found.keys[key] for key in needed))
        ),
        *_topics(found.keys),
    ]
    # Without valid views, the parameters are checked for a stand-in.
    usable = "views" in found.sections and not any(p.path[0] == "views" for p in problems)
    of_selector = list(_selector(found.selector, found.sections["views"] if usable else None))
    problems += of_selector
    if usable and not of_selector:
        problems += [*_ranking_size(found), *_state_size(found)]
    return problems


def _views(views: Sequence[Mapping[str, Any]]) -> Iterator[ConfigurationProblem]:
    seen: set[str] = set()
    for index, view in enumerate(views):
        name, dimension = view.get("name"), view.get("dimension")
        if name in seen:
            yield ConfigurationProblem(("views", index, "name"), f"{name!r} is declared twice")
        if name is not None:
            seen.add(name)
        if dimension is None:
            continue
        names, shape = view.get("names"), view.get("shape")
        features = f"for {dimension} features" + (f" of {name!r}" if name is not None else "")
        if names is not None and len(names) != dimension:
            yield ConfigurationProblem(
                ("views", index, "names"), f"has {len(names)} names {features}"
            )
        if shape is not None and math.prod(shape) != dimension:
            yield ConfigurationProblem(
                ("views", index, "shape"),
                f"{list(shape)} has {math.prod(shape)} places {features}",
            )


def _view_limit(views: int, limit: int) -> Iterator[ConfigurationProblem]:
    if limit < views:
        yield ConfigurationProblem(
            ("limits", "views"), f"should be at least {views}, the views declared, got {limit}"
        )


def _record_size(record_bytes: int, largest_message: int) -> Iterator[ConfigurationProblem]:
    """An accepted record must also fit into the clients' messages."""
    if record_bytes > largest_message:
        yield ConfigurationProblem(
            ("limits", "record_bytes"),
            f"should be at most kafka.largest_message ({largest_message}), got {record_bytes}",
        )


def _patience(name: str, watchdog: float, limit: float) -> Iterator[ConfigurationProblem]:
    """A call within its timeout must not look hung."""
    if watchdog <= limit:
        yield ConfigurationProblem(
            ("service", "watchdog_seconds"),
            f"should be above {name} ({limit:g}), got {watchdog:g}",
        )


_transaction_patience = partial(_patience, "kafka.transaction_timeout")
_call_patience = partial(_patience, "kafka.call_timeout")
_grace = partial(_patience, "service.grace_seconds")


def _topics(keys: Mapping[str, Any]) -> Iterator[ConfigurationProblem]:
    """Every topic has one purpose: a stream that reads its own output never ends."""
    uses: dict[str, str] = {}
    inputs: tuple[str, ...] = keys.get("stream.topics", ())

    def clash(name: str, path: Path, use: str) -> Iterator[ConfigurationProblem]:
        if name in uses:
            yield ConfigurationProblem(path, f"topic {name!r} is already {uses[name]}")
        uses.setdefault(name, use)

    for index, topic in enumerate(inputs):
        yield from clash(topic, ("stream", "topics", index), "an input topic")
    for section, what in (("output", "rankings"), ("dead_letters", "dead letters")):
        if f"{section}.topic" in keys:
            use = f"the topic of the {what}"
            yield from clash(keys[f"{section}.topic"], (section, "topic"), use)
    for topic in dict.fromkeys(inputs) if "state.topic" in keys else ():
        name = keys["state.topic"].replace("{topic}", topic)
        yield from clash(name, ("state", "topic"), f"the state of {topic!r}")
        try:
            topic_name(name)
        except ValueError as error:
            yield ConfigurationProblem(("state", "topic"), f"{error}, but gives {name!r}")


def _bootstrap(bootstrap: str) -> Iterator[ConfigurationProblem]:
    wrong = wrong_addresses(bootstrap)
    if wrong or not bootstrap.strip(" ,"):
        yield ConfigurationProblem(
            ("kafka", "bootstrap"),
            "should be host:port of one or more brokers, separated by commas"
            f"{shown(('kafka', 'bootstrap'), ', '.join(wrong) or bootstrap)}",
        )


def _group(group: str) -> Iterator[ConfigurationProblem]:
    if not group.strip():
        yield ConfigurationProblem(
            ("kafka", "group"), f"should be a name{shown(('kafka', 'group'), group)}"
        )


def _properties(properties: Mapping[str, Property | Secret]) -> Iterator[ConfigurationProblem]:
    """Validate each property by the client settings, then by the client library."""
    for name, value in properties.items():
        plain = revealed(value)
        said = _settings_refusal({name: plain}) or property_error(name, plain)
        if said is not None:
            yield ConfigurationProblem(
                ("kafka", "properties", name), _said_of_property(name, plain, said)
            )


def _broker_decides(
    properties: Mapping[str, Property | Secret], protocol: str
) -> Iterator[ConfigurationProblem]:
    """Properties that the protocol does not allow."""
    for name, value in properties.items():
        alone = {name: revealed(value)}
        said = _settings_refusal(alone, REBALANCE[protocol])
        if said is not None and _settings_refusal(alone) is None:
            yield ConfigurationProblem(("kafka", "properties", name), said)


def _settings_refusal(
    properties: Mapping[str, Property], rebalance: Rebalance = Rebalance.COOPERATIVE
) -> str | None:
    return _refusal(
        lambda: ClientSettings("broker", "group", rebalance=rebalance, properties=properties)
    )


def _said_of_property(name: str, value: Property, said: str) -> str:
    """The message with the value it refers to, and without secrets."""
    if is_secret(name):
        return redacted(said, {str(value)})
    return said if str(value) in said or said.startswith(name) else f"{said}, got {value!r}"


def _ranking_size(found: ValidValues) -> Iterator[ConfigurationProblem]:
    """Whether every ranking fits into a message."""
    names = ("stream.name", "stream.topics", "output.top", "output.format")
    enough = _excerpt(found, (*names, "kafka.largest_message"))
    if enough is not None and (message := ranking_problem(enough)) is not None:
        yield ConfigurationProblem(("output", "top"), message)


def _state_size(found: ValidValues) -> Iterator[ConfigurationProblem]:
    """Whether the state fits into messages."""
    names = ("stream.name", "stream.topics", "merge.enabled", "kafka.group")
    enough = _excerpt(found, (*names, "kafka.largest_message"))
    if enough is not None and (message := state_problem(enough)) is not None:
        yield ConfigurationProblem(("kafka", "largest_message"), message)


def _excerpt(found: ValidValues, keys: Sequence[str]) -> Configuration | None:
    """A configuration of views, selector and these keys; None if any of them is invalid."""
    if "selector" not in found.sections or not all(key in found.keys for key in keys):
        return None
    values: dict[str, dict[str, Any]] = defaultdict(dict)
    for key in keys:
        section, name = key.split(".")
        values[section][name] = found.keys[key]
    parts: dict[str, Any] = {}
    for section, given in values.items():
        declared: Any = Configuration.model_fields[section].annotation
        parts[section] = declared.model_construct(**given)
    return Configuration.model_construct(
        views=found.sections["views"], selector=found.sections["selector"], **parts
    )


def _selector(
    selector: Mapping[str, Any], views: tuple[sections.ViewSection, ...] | None
) -> Iterator[ConfigurationProblem]:
    """Validate the parameters by the selector; each refused one is removed for the next attempt."""
    known = {field.name for field in fields(Params)} - {"views"}
    given = dict(selector)
    for name in sorted(set(given) - known):
        yield unknown(("selector", name), known)
        del given[name]
    declared = [_STAND_IN] if views is None else [selector_view(view) for view in views]
    if views is None:
        given = {name: value for name, value in given.items() if not isinstance(value, Mapping)}

    def refusal(values: Mapping[str, Any]) -> str | None:
        return _refusal(lambda: params(declared, **{"clusters": 1, **values}))

    while (message := refusal(given)) is not None:
        # In reverse, so that of a contradicting minimum and maximum the maximum is reported.
        for name in reversed(list(given)):
            rest = {other: value for other, value in given.items() if other != name}
            if refusal(rest) != message:
                yield ConfigurationProblem(("selector", name), _said_of(name, given[name], message))
                given = rest
                break
        else:
            yield ConfigurationProblem(("selector",), message)
            return


def _said_of(name: str, value: Any, message: str) -> str:
    """The selector's message about a parameter, without its name and with its value."""
    said = message.removeprefix(f"{name} ") if message.startswith(f"{name} must") else message
    return said if repr(value) in said else said + shown(("selector", name), value)


def _refusal(attempt: Callable[[], object]) -> str | None:
    try:
        attempt()
    except InvalidParameter as error:
        return str(error)
    return None
