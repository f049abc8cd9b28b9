"""What makes two replays the same: everything that the bytes of their output depend on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from stream_fs.errors import ReplayChanged
from stream_fs.pipeline.settings import StreamSettings

_WIDTH: Final = 120


def identity(settings: StreamSettings, topic: str, more: Mapping[str, object]) -> dict[str, str]:
    """By name, in words; `more` is what the settings do not say."""
    cut, letters = settings.cut, settings.dead_letters
    selector = settings.params.to_dict()
    views = {view["name"]: view for view in selector.pop("views")}
    facts: dict[str, Any] = {
        "stream.name": settings.stream,
        "stream.topics": topic,
        "format of the records": settings.record_format,
        "chunk.records": cut.records,
        "records of the first chunk": cut.first,
        "chunk.max_span": cut.max_span,
        "output.top": settings.output_top,
        "output.format": settings.output_format,
        "dead_letters.policy": letters.policy,
        "dead_letters.max_open_bytes": letters.max_open_bytes,
        "bytes of the largest dead letter": letters.largest,
        "limits.record_bytes": settings.limits.record_bytes,
        "limits.views": settings.limits.views,
        **{
            f"view {view.name}": {**views[view.name], "dtype": view.dtype}
            for view in settings.views
        },
        **{f"selector.{name}": value for name, value in selector.items()},
        **more,
    }
    return {name: repr(value) for name, value in facts.items()}


LATER: Final = {"dead_letters.max_open_bytes", "bytes of the largest dead letter"}
"""Facts that are missing in checkpoints of releases up to 0.1."""


def check_same(checkpoint: str, before: Mapping[str, Any], now: Mapping[str, str]) -> None:
    """Raises `ReplayChanged` with every difference."""
    differences = [
        f"{name}: {_shown(before.get(name))} → {_shown(now.get(name))}"
        for name in dict.fromkeys([*now, *before])
        if before.get(name) != now.get(name) and (name in before or name not in LATER)
    ]
    if differences:
        raise ReplayChanged(checkpoint, differences)


def _shown(value: object) -> str:
    text = "not there" if value is None else str(value)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
