"""Loading: the file, overridden by environment variables, overridden by flags.

A variable is named STREAM_FS_SECTION__KEY, a flag is `--set section.key=value`. Their text is the
value of a key that takes text; for other keys it is parsed as TOML (`500`, `0.1`, `["a", "b"]`).
librdkafka properties are named STREAM_FS_KAFKA__PROPERTIES__SASL_PASSWORD and
`--set kafka.properties.sasl.password=…`.
"""

from __future__ import annotations

import copy
import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from stream_fs.errors import InvalidConfiguration
from stream_fs.service.configuration import validation
from stream_fs.service.configuration.configuration import Configuration
from stream_fs.service.configuration.problems import ConfigurationProblem, Path, lines
from stream_fs.service.configuration.secrets import Place, text_of
from stream_fs.service.configuration.validation import read

PREFIX = "STREAM_FS_"
MOST_LEVELS = 16
"""Maximum nesting of tables and lists; a valid configuration has five levels at most."""
OTHER_VARIABLES = frozenset(
    f"{PREFIX}{name}" for name in ("CONFIG", "CORE", "BOOTSTRAP", "NO_SKIP")
)
"""Variables that set no key: of the command line, the selector, the broker, and the tests."""
# Kubernetes sets variables for the services of a namespace; their names may have the same prefix.
_OF_KUBERNETES = re.compile(
    r"_SERVICE_HOST$|_SERVICE_PORT(_|$)|_PORT$|_PORT_\d+_(TCP|UDP|SCTP)(_|$)"
)
_PROPERTIES = ["kafka", "properties"]
_ONE_EACH = (
    "set each property by its own name: `--set kafka.properties.linger.ms=5`, or the variable "
    f"{PREFIX}KAFKA__PROPERTIES__LINGER_MS=5"
)
_FILE_ONLY = "views can only be declared in the file, each in its own [[views]] table"


@dataclass(frozen=True, slots=True)
class Setting:
    """A value from a variable or a flag; `origin` names its source."""

    path: tuple[str, ...]
    text: str
    origin: str


def of_file(path: FilePath) -> dict[str, Any]:
    """The parsed file; a ValueError says why it cannot be read."""
    text = text_of(path)
    try:
        plain = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    if _depth(plain) > MOST_LEVELS:
        raise ValueError(f"{path} has more than {MOST_LEVELS} nested tables")
    return plain


def of_environment(environ: Mapping[str, str]) -> Iterator[Setting]:
    """The variables that set a key, recognised by a double underscore."""
    for name, text in sorted(environ.items()):
        if _names_key(name):
            parts = name.removeprefix(PREFIX).lower().split("__")
            if parts[:2] == _PROPERTIES:
                parts = [*_PROPERTIES, ".".join(parts[2:]).replace("_", ".")]
            yield Setting(tuple(parts), text, name)


def _names_key(variable: str) -> bool:
    """Whether the name of a variable has the form of a section and a key."""
    return variable.startswith(PREFIX) and "__" in variable.removeprefix(PREFIX)


def mistaken_variables(environ: Mapping[str, str]) -> Iterator[ConfigurationProblem]:
    """Unknown variables with the prefix STREAM_FS_, each with the closest known one."""
    keys = [
        f"{PREFIX}{section}__{key}".upper()
        for section, field in Configuration.model_fields.items()
        for key in getattr(field.annotation, "model_fields", ())
    ]
    # Compared without the common prefix.
    known = {one.removeprefix(PREFIX): one for one in (*keys, *sorted(OTHER_VARIABLES))}
    for name in sorted(environ):
        if not name.startswith(PREFIX) or _names_key(name) or name in OTHER_VARIABLES:
            continue
        if "KUBERNETES_SERVICE_HOST" in environ and _OF_KUBERNETES.search(name):
            continue
        near = [key for key in keys if key.replace("__", "_") == name]
        close = difflib.get_close_matches(name.removeprefix(PREFIX), known, n=1)
        near += [known[one] for one in close]
        hint = f"did you mean {near[0]}?" if near else f"keys are {PREFIX}SECTION__KEY"
        if name == f"{PREFIX}VIEWS":
            hint = _FILE_ONLY
        yield ConfigurationProblem((name,), f"is not a known variable; {hint}")


def of_flags(flags: Iterable[str]) -> Iterator[Setting]:
    """Flags of the form `section.key=value`; a ValueError names any other."""
    for flag in flags:
        name, equals, text = flag.partition("=")
        parts = name.strip().split(".")
        if parts[:2] == _PROPERTIES:
            parts = [*_PROPERTIES, ".".join(parts[2:])]
        if parts == ["views"]:
            raise ValueError(f"--set {name}: {_FILE_ONLY}")
        if parts == [*_PROPERTIES, ""]:
            raise ValueError(f"--set {name}: {_ONE_EACH}")
        if not equals or len(parts) < 2 or not all(parts):
            # The value is not shown: it may be a secret.
            sections = ", ".join(one for one in Configuration.model_fields if one != "views")
            raise ValueError(
                f"--set {name}: should be section.key=value, for example chunk.records=200; "
                f"sections are {sections}"
            )
        yield Setting(tuple(parts), text, "--set")


def override(
    plain: Mapping[str, Any], settings: Iterable[Setting]
) -> tuple[dict[str, Any], dict[Path, str], list[ConfigurationProblem]]:
    """The data with the settings applied, the origin of each, and those that do not fit."""
    merged = copy.deepcopy(dict(plain))
    origins: dict[Path, str] = {}
    problems: list[ConfigurationProblem] = []
    for setting in settings:
        origins[setting.path] = setting.origin
        if setting.path[0] not in plain:
            origins.setdefault(setting.path[:1], setting.origin)
        if len(setting.path) > MOST_LEVELS:
            problems.append(ConfigurationProblem(setting.path[:2], "has no keys that deep"))
        elif setting.path[0] == "views":
            problems.append(ConfigurationProblem(setting.path, _FILE_ONLY))
        elif setting.path == (*_PROPERTIES, ""):
            origins[setting.path[:2]] = setting.origin
            problems.append(ConfigurationProblem(setting.path[:2], _ONE_EACH))
        else:
            _put(merged, setting.path, _value(setting))
    return merged, origins, problems


def _put(table: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for part in path[:-1]:
        below = table.setdefault(part, {})
        if not isinstance(below, dict):
            return  # the file has a value in place of a table, which is reported separately
        table = below
    table[path[-1]] = value


def _value(setting: Setting) -> Any:
    if _wants_text(setting.path):
        return setting.text
    try:
        plain = tomllib.loads(f"value = {setting.text}")
    except (ValueError, RecursionError):
        return setting.text
    return plain["value"] if _depth(plain) <= MOST_LEVELS else setting.text


def _depth(plain: Any) -> int:
    """Nesting of tables and lists, determined without recursion."""
    depth, level = 0, [plain]
    while level:
        depth += 1
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    return depth


def _wants_text(path: tuple[str, ...]) -> bool:
    """Whether the key at this path takes only text."""
    if len(path) > 2:
        return list(path[:2]) == _PROPERTIES
    section = Configuration.model_fields.get(path[0])
    model = section.annotation if section is not None else None
    field = getattr(model, "model_fields", {}).get(path[1])
    if field is None:
        return False
    annotation = field.annotation
    options = [annotation] if get_origin(annotation) else get_args(annotation) or [annotation]
    return all(option in (str, NoneType) or get_origin(option) is Literal for option in options)


def load(path: FilePath, environ: Mapping[str, str], flags: Iterable[str] = ()) -> Configuration:
    """The configuration; raises `InvalidConfiguration` with all problems.

    `flags` have the form `section.key=value`. File names in the configuration are relative to the
    folder of the configuration file.
    """
    try:
        plain = of_file(path)
        settings = [*of_environment(environ), *of_flags(flags)]
    except ValueError as error:
        raise InvalidConfiguration([str(error)]) from None
    merged, origins, problems = override(plain, settings)
    found, more = read(merged, Place(environ, path.parent))
    problems += [*more, *mistaken_variables(environ)]
    problems += validation.all_problems(found)
    if problems:
        raise InvalidConfiguration(lines(problems, origins))
    return Configuration.model_construct(**found.sections)
