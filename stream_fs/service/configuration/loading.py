"""From a file, variables and flags to a configuration, or to everything that is wrong with it.

Each section is checked by itself, and what concerns several sections on those that are right; so
one mistake does not hide the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from stream_fs.errors import InvalidConfiguration
from stream_fs.service.configuration import checks, sources
from stream_fs.service.configuration.configuration import Configuration
from stream_fs.service.configuration.problems import Problem, lines, problems_of, unknown
from stream_fs.service.configuration.secrets import Place
from stream_fs.service.configuration.sections import DeclaredView
from stream_fs.service.configuration.sizes import ranking_problem
from stream_fs.service.configuration.values import StreamName

STREAM_NAME: TypeAdapter[str] = TypeAdapter(StreamName)


def load(path: Path, environ: Mapping[str, str], flags: Iterable[str] = ()) -> Configuration:
    """The configuration; raises `InvalidConfiguration` with every problem.

    `flags` are of the form `section.key=value`. File names in the configuration are relative to
    the folder of its file.
    """
    try:
        plain = sources.of_file(path)
        settings = [*sources.of_environment(environ), *sources.of_flags(flags)]
    except ValueError as error:
        raise InvalidConfiguration([str(error)]) from None
    merged, origins, problems = sources.lay_over(plain, settings)
    found, more = _read(merged, Place(environ, path.parent))
    problems += more
    problems += checks.all_problems(found)
    if problems:
        raise InvalidConfiguration(lines(problems, origins))
    configuration = Configuration.model_construct(**found)
    if (too_large := ranking_problem(configuration)) is not None:
        raise InvalidConfiguration([too_large])
    return configuration


def _read(plain: Mapping[str, Any], place: Place) -> tuple[dict[str, Any], list[Problem]]:
    """The sections that are right, by name, and what is wrong with the others."""
    names = Configuration.model_fields
    problems = [unknown((name,), names) for name in plain if name not in names]
    found: dict[str, Any] = {}
    derived = derived_defaults(plain)
    for name, field in names.items():
        value = plain.get(name, [] if name == "views" else {})
        if isinstance(value, dict):
            value = {**derived.get(name, {}), **value}
        model: Any = DeclaredView if name == "views" else field.annotation
        try:
            found[name] = _section(name).validate_python(value, context=place)
        except ValidationError as error:
            problems += problems_of(error, (name,), model.model_fields)
    return found, problems


@cache
def _section(name: str) -> TypeAdapter[Any]:
    """What checks one section; it takes longer to make than to use."""
    annotation: Any = Configuration.model_fields[name].rebuild_annotation()
    return TypeAdapter(annotation)


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
