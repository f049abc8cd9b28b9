"""The configuration as TOML: the values in effect, and an example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from inspect import getdoc
from typing import Any, Final

from stream_fs.service.configuration import problems
from stream_fs.service.configuration.configuration import Configuration
from stream_fs.service.configuration.sections import Section, ViewSection
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
"""Values of commented keys whose default explains nothing."""


def shown(configuration: Configuration) -> str:
    """All values in effect, with presets resolved and default names derived; secrets redacted."""
    lines: list[str] = []
    for name in Configuration.model_fields:
        if name == "views":
            resolved = configuration.stream_settings().views
            for view, in_effect in zip(configuration.views, resolved, strict=True):
                table = {**dict(view), "transform": in_effect.transform}
                lines += ["[[views]]", *_pairs(table), ""]
            continue
        section: Mapping[str, Any] = dict(getattr(configuration, name))
        if name == "selector":
            section = {k: v for k, v in configuration.params().to_dict().items() if k != "views"}
        lines += [f"[{name}]", *_pairs(section), ""]
    return "\n".join(lines)


def _pairs(section: Mapping[str, Any]) -> Iterator[str]:
    for name, value in section.items():
        # TOML has no null.
        yield (
            f"# {name} is not set"
            if value is None
            else f"{problems.toml_key(name)} = {problems.toml_value(value)}"
        )


def example() -> str:
    """A usable file: required keys are set, all others are comments."""
    derived = derived_defaults(_EXAMPLE)
    lines = [
        "# Configuration of stream-fs. Commented keys show their defaults, or an example if there",
        "# is none. Environment variables (STREAM_FS_CHUNK__RECORDS=200) override this file, and",
        "# flags (--set chunk.records=200) override both.",
        "",
    ]
    for name, field in Configuration.model_fields.items():
        possible = {**derived.get(name, {}), **_POSSIBLE.get(name, {})}
        if name == "views":
            lines += _described(ViewSection)
            for index, view in enumerate(_EXAMPLE_VIEWS):
                # Only the first view is explained.
                body = _table(ViewSection, view, possible) if not index else _pairs(view)
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
