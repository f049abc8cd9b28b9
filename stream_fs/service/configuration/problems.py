"""The problems of a configuration as messages, and values as TOML."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pydantic import ValidationError

from stream_fs.service.configuration.secrets import REDACTED, Secret

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def toml_key(name: str) -> str:
    """A key, quoted if necessary."""
    return name if _BARE_KEY.fullmatch(name) else toml_value(name)


def toml_value(data: Any) -> str:
    """A value on one line; a secret as its reference, or redacted."""
    match data:
        case Secret():
            return toml_value(REDACTED if data.origin is None else data.origin)
        case bool():
            return "true" if data else "false"
        case int() | float():
            return repr(data)
        case str():
            # A JSON string is a TOML string, except for one control character.
            return json.dumps(data, ensure_ascii=False).replace("\x7f", "\\u007f")
        case Mapping():
            inner = ", ".join(
                f"{toml_key(name)} = {toml_value(item)}" for name, item in data.items()
            )
            return f"{{ {inner} }}" if inner else "{}"
        case _:
            return f"[{', '.join(toml_value(item) for item in data)}]"


Path: TypeAlias = tuple[str | int, ...]
"""Location of a value: section, key, and so on; numbers are indices into an array of tables."""

_LONGEST = 80
# Some of these are secrets, and their names do not always show it.
_NEVER_SHOWN = ("kafka", "properties")


@dataclass(frozen=True, slots=True)
class ConfigurationProblem:
    """One mistake: the key, and what is wrong with its value."""

    path: Path
    message: str


def key(path: Path) -> str:
    """The path in the notation of the file."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{toml_key(part)}" if text else toml_key(part)
    return text


def describe(problem: ConfigurationProblem, origins: Mapping[Path, str]) -> str:
    """One line: key, message, and the variable or flag that set the value, if any."""
    origin = next((origins[path] for path in _prefixes(problem.path) if path in origins), None)
    line = f"{key(problem.path)}: {problem.message}"
    return f"{line} (from {origin})" if origin else line


def _prefixes(path: Path) -> Iterator[Path]:
    """The path and its parents, but not the section, which may have a missing key in the file."""
    yield path
    for length in range(len(path) - 1, 1, -1):
        yield path[:length]


def problems_of(
    error: ValidationError, path: Path, known: Collection[str]
) -> Iterator[ConfigurationProblem]:
    """The problems in pydantic's error about the value at `path`, whose keys are `known`."""
    for found in error.errors(include_url=False):
        place = (*path, *found["loc"])
        if found["type"] == "missing":
            yield ConfigurationProblem(place, "is missing")
        elif found["type"] == "extra_forbidden":
            yield unknown(place, known)
        elif found["type"] in ("model_type", "model_attributes_type", "dict_type"):
            yield ConfigurationProblem(place, "should be a table")
        elif place == ("views",) and found["type"] == "tuple_type":
            yield ConfigurationProblem(place, "should be tables, each under its own [[views]]")
        elif found["type"] == "tuple_type":
            example = '["a", "b"]' if place == ("stream", "topics") else "[16, 15]"
            yield ConfigurationProblem(
                place, f"should be a list, as {example}{shown(place, found['input'])}"
            )
        else:
            message = found["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
            message = re.sub(r"^(Input|String|Tuple|List|Value) should", "should", message)
            message = re.sub(r" after validation, not \d+$", "", message)
            yield ConfigurationProblem(place, message + shown(place, found["input"]))


def unknown(path: Path, known: Collection[str]) -> ConfigurationProblem:
    """An unknown key. Its value is not shown: it may be a misplaced secret."""
    name = str(path[-1])
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}"
    return ConfigurationProblem(path, f"is not a known key; {hint}")


def shown(path: Path, value: Any) -> str:
    """The value as the end of a message; empty where it may be a secret."""
    if path[: len(_NEVER_SHOWN)] == _NEVER_SHOWN:
        return ""
    text = repr(value)
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}…"
    return f", got {text}"


def lines(problems: Sequence[ConfigurationProblem], origins: Mapping[Path, str]) -> list[str]:
    """All problems, without duplicates, in the order in which they were found."""
    return list(dict.fromkeys(describe(problem, origins) for problem in problems))
