"""The configuration as a file again: what is in effect, and an example to begin with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from inspect import getdoc
from typing import Any, Final

from stream_fs.service.configuration import problems
from stream_fs.service.configuration.configuration import Configuration
from stream_fs.service.configuration.sections import DeclaredView, Section
from stream_fs.service.configuration.validation import derived_defaults

_EXAMPLE: Final[dict[str, dict[str, Any]]] = {
    "stream": {"name": "digits", "topics": ["digits"]},
    "selector": {"clusters": 10},
    "kafka": {"bootstrap": "localhost:9092"},
}
_EXAMPLE_VIEWS: Final = (
    {"name": "fourier", "dimension": 76},
    {"name": "pixels", "dimension": 240, "shape": [16, 15]},
)
_POSSIBLE: Final[dict[str, dict[str, Any]]] = {
    "views": {"transform": "minmax", "names": "names.txt", "shape": [4, 19]},
    "chunk": {"max_span": 3600.0},
    "kafka": {
        "properties": {"session.timeout.ms": 45000, "sasl.password": {"env": "KAFKA_PASSWORD"}}
    },
}
"""Values for comments, where the default would tell nothing."""


def shown(configuration: Configuration) -> str:
    """Every value in effect, presets and derived names filled in; secrets are not shown."""
    lines: list[str] = []
    for name in Configuration.model_fields:
        if name == "views":
            told = configuration.stream_settings().views
            for view, in_force in zip(configuration.views, told, strict=True):
                table = {**dict(view), "transform": in_force.transform}
                lines += ["[[views]]", *_pairs(table), ""]
            continue
        section: Mapping[str, Any] = dict(getattr(configuration, name))
        if name == "selector":
            section = {k: v for k, v in configuration.params().to_dict().items() if k != "views"}
        lines += [f"[{name}]", *_pairs(section), ""]
    return "\n".join(lines)


def _pairs(section: Mapping[str, Any]) -> Iterator[str]:
    for name, value in section.items():
        # What is not set has no value in TOML.
        yield (
            f"# {name} is not set"
            if value is None
            else f"{problems.toml_key(name)} = {problems.toml_value(value)}"
        )


def example() -> str:
    """A file that can be used: what is needed is set, everything else a comment."""
    derived = derived_defaults(_EXAMPLE)
    lines = [
        "# A configuration of stream-fs. Keys in comments have the value that they would have",
        "# anyway, or an example where there is none. Environment variables go over this file",
        "# (STREAM_FS_CHUNK__RECORDS=200), flags over those (--set chunk.records=200).",
        "",
    ]
    for name, field in Configuration.model_fields.items():
        possible = {**derived.get(name, {}), **_POSSIBLE.get(name, {})}
        if name == "views":
            lines += _described(DeclaredView)
            for index, view in enumerate(_EXAMPLE_VIEWS):
                # The second one needs no explanations any more.
                body = _table(DeclaredView, view, possible) if not index else _pairs(view)
                lines += ["[[views]]", *body, ""]
        else:
            model: Any = field.annotation
            lines += [*_described(model), f"[{name}]"]
            lines += [*_table(model, _EXAMPLE.get(name, {}), possible), ""]
    return "\n".join(lines)


def _described(model: type[Section]) -> list[str]:
    return [f"# {line}".rstrip() for line in (getdoc(model) or "").splitlines()]


def _table(
    model: type[Section], given: Mapping[str, Any], possible: Mapping[str, Any]
) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield f"# {field.description}"
        if name in given:
            yield f"{name} = {problems.toml_value(given[name])}"
        else:
            yield f"# {name} = {problems.toml_value(possible.get(name, field.default))}"
