"""What several keys or sections must agree on; each check looks only at sections that are right."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from functools import partial
from typing import Any

from stream_fs.errors import InvalidParameter
from stream_fs.selector import Params, View, params
from stream_fs.service.configuration import sections
from stream_fs.service.configuration.configuration import client_settings, selector_view
from stream_fs.service.configuration.problems import Problem, shown, unknown
from stream_fs.service.configuration.values import topic_name

Found = Mapping[str, Any]
"""Sections by name."""

_STAND_IN = View("view", 1)


def all_problems(found: Found) -> list[Problem]:
    """Every disagreement."""
    checks: tuple[tuple[Callable[..., Iterator[Problem]], tuple[str, ...]], ...] = (
        (_views, ("views",)),
        (_view_limit, ("views", "limits")),
        (_record_size, ("limits", "kafka")),
        (_patience, ("service", "kafka")),
        (_topics, ("stream", "output", "dead_letters", "state")),
        (_kafka, ("kafka",)),
    )
    problems = [
        problem
        for check, needed in checks
        if all(name in found for name in needed)
        for problem in check(*(found[name] for name in needed))
    ]
    if "selector" in found:
        # Broken views have been told of; the parameters are then checked without them.
        usable = "views" in found and not any(p.path[0] == "views" for p in problems)
        problems += _selector(found["selector"], found["views"] if usable else None)
    return problems


def _views(views: tuple[sections.DeclaredView, ...]) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, view in enumerate(views):
        if view.name in seen:
            yield Problem(("views", index, "name"), f"{view.name!r} is declared twice")
        seen.add(view.name)
        if view.names is not None and len(view.names) != view.dimension:
            yield Problem(
                ("views", index, "names"),
                f"has {len(view.names)} names for {view.dimension} features of {view.name!r}",
            )
        if view.shape is not None and math.prod(view.shape) != view.dimension:
            yield Problem(
                ("views", index, "shape"),
                f"{list(view.shape)} has {math.prod(view.shape)} places "
                f"for {view.dimension} features of {view.name!r}",
            )


def _view_limit(
    views: tuple[sections.DeclaredView, ...], limits: sections.Limits
) -> Iterator[Problem]:
    if limits.views < len(views):
        yield Problem(
            ("limits", "views"),
            f"should be at least {len(views)}, the views declared, got {limits.views}",
        )


def _record_size(limits: sections.Limits, kafka: sections.Kafka) -> Iterator[Problem]:
    """A record that is taken must also fit through the clients, as a dead letter at the latest."""
    if limits.record_bytes > kafka.largest_message:
        yield Problem(
            ("limits", "record_bytes"),
            f"should be at most kafka.largest_message ({kafka.largest_message}), "
            f"got {limits.record_bytes}",
        )


def _patience(service: sections.Service, kafka: sections.Kafka) -> Iterator[Problem]:
    """A call that may take its time must not look hung."""
    for name in ("transaction_timeout", "call_timeout"):
        limit = getattr(kafka, name)
        if service.watchdog_seconds <= limit:
            yield Problem(
                ("service", "watchdog_seconds"),
                f"should be above kafka.{name} ({limit:g}), got {service.watchdog_seconds:g}",
            )


def _topics(
    stream: sections.Stream,
    output: sections.Output,
    dead_letters: sections.DeadLetters,
    state: sections.State,
) -> Iterator[Problem]:
    """Every topic has one purpose: a stream that reads what it writes never ends."""
    uses: dict[str, str] = {}

    def clash(name: str, path: tuple[str | int, ...], use: str) -> Iterator[Problem]:
        if name in uses:
            yield Problem(path, f"topic {name!r} is {uses[name]} already")
        uses.setdefault(name, use)

    for index, topic in enumerate(stream.topics):
        yield from clash(topic, ("stream", "topics", index), "an input topic")
    yield from clash(output.topic, ("output", "topic"), "the topic of the rankings")
    yield from clash(dead_letters.topic, ("dead_letters", "topic"), "the topic of the dead letters")
    for topic in dict.fromkeys(stream.topics):
        name = state.topic.replace("{topic}", topic)
        yield from clash(name, ("state", "topic"), f"the state of {topic!r}")
        try:
            topic_name(name)
        except ValueError as error:
            yield Problem(("state", "topic"), f"{error}, but gives {name!r}")


def _kafka(kafka: sections.Kafka) -> Iterator[Problem]:
    """Let the clients' settings judge each property by itself, and then all the rest."""
    for name, value in kafka.properties.items():
        single = kafka.model_copy(update={"properties": {name: value}})
        if (message := _refusal(partial(client_settings, single))) is not None:
            yield Problem(("kafka", "properties", name), message)
    bare = kafka.model_copy(update={"properties": {}})
    if (message := _refusal(partial(client_settings, bare))) is not None:
        yield Problem(("kafka",), message)


def _selector(
    selector: sections.Selector, views: tuple[sections.DeclaredView, ...] | None
) -> Iterator[Problem]:
    """Let the selector judge its parameters; one after the other is set aside as it is refused."""
    known = {field.name for field in fields(Params)} - {"views"}
    given = selector.model_dump()
    for name in sorted(set(given) - known):
        yield unknown(("selector", name), known)
        del given[name]
    declared = [_STAND_IN] if views is None else [selector_view(view) for view in views]
    if views is None:
        given = {name: value for name, value in given.items() if not isinstance(value, Mapping)}

    def refusal(values: Mapping[str, Any]) -> str | None:
        return _refusal(lambda: params(declared, **{"clusters": 1, **values}))

    while (message := refusal(given)) is not None:
        # Later ones first: of a largest and a smallest value that contradict, the largest.
        for name in reversed(list(given)):
            rest = {other: value for other, value in given.items() if other != name}
            if refusal(rest) != message:
                yield Problem(("selector", name), _said_of(name, given[name], message))
                given = rest
                break
        else:
            yield Problem(("selector",), message)
            return


def _said_of(name: str, value: Any, message: str) -> str:
    """The selector's message about a parameter, whose name goes before it and value after it."""
    said = message.removeprefix(f"{name} ") if message.startswith(f"{name} must") else message
    return said if repr(value) in said else said + shown(("selector", name), value)


def _refusal(attempt: Callable[[], object]) -> str | None:
    try:
        attempt()
    except InvalidParameter as error:
        return str(error)
    return None
