"""A ranking from plain data that may be anything: every field is of its type, or it is refused."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from stream_fs.errors import InvalidMessage
from stream_fs.wire.rankings import (
    Change,
    Feature,
    Fit,
    RankedView,
    RankingMessage,
    Records,
    Source,
)

_LARGEST: Final = 2**63 - 1
"""Counts, offsets and times go up to here."""


def read_message(plain: Mapping[str, Any]) -> RankingMessage:
    """The message; `InvalidMessage` names the field that is not as it should be."""
    absent = [one.name for one in fields(RankingMessage) if one.name not in plain]
    if absent:
        raise InvalidMessage(f"`{absent[0]}` is not there")
    offsets, selection, fit = plain["offsets"], plain["selection"], plain["fit"]
    merged = plain["topic"] is None
    views = tuple(_view(one) for one in _maps(plain, "views"))
    return RankingMessage(
        stream=_text(plain, "stream"),
        topic=None if merged else _text(plain, "topic"),
        partition=None if merged else _whole(plain, "partition"),
        preset=_text(plain, "preset"),
        score=_text(plain, "score"),
        model=_text(plain, "model"),
        sequence=_whole(plain, "sequence"),
        offsets=None if offsets is None else _offsets(_map(plain, "offsets")),
        as_of=_whole(plain, "as_of", least=-_LARGEST),
        records=_records(_map(plain, "records")),
        views=views,
        selection=None if selection is None else _selection(_map(plain, "selection"), views),
        fit=None if fit is None else _fit(_map(plain, "fit")),
        sources=tuple(
            Source(_text(one, "topic"), _whole(one, "partition"), _whole(one, "sequence"))
            for one in _maps(plain, "sources")
        ),
    )


def _offsets(plain: Mapping[str, Any]) -> tuple[int, int]:
    return _whole(plain, "from"), _whole(plain, "next")


def _records(plain: Mapping[str, Any]) -> Records:
    missing = _map(plain, "missing")
    return Records(
        chunk=None if plain.get("chunk") is None else _whole(plain, "chunk"),
        total=_whole(plain, "total"),
        dead_letters=_whole(plain, "dead_letters"),
        missing={name: _whole(missing, name) for name in missing},
    )


def _view(plain: Mapping[str, Any]) -> RankedView:
    features = tuple(
        Feature(
            _whole(one, "index"),
            _number(one, "relevance"),
            None if one.get("name") is None else _text(one, "name"),
        )
        for one in _maps(plain, "features")
    )
    return RankedView(_text(plain, "name"), _number(plain, "weight"), features)


def _selection(plain: Mapping[str, Any], views: Sequence[RankedView]) -> dict[str, Change]:
    if any(view.name not in plain for view in views):
        raise InvalidMessage("`selection` lacks a view")
    changes = {name: _map(plain, name) for name in plain}
    return {
        name: Change(_wholes(one, "entered"), _wholes(one, "left"), _number(one, "overlap"))
        for name, one in changes.items()
    }


def _fit(plain: Mapping[str, Any]) -> Fit:
    return Fit(
        iterations=_whole(plain, "iterations"),
        converged=_of(plain, "converged", bool),
        objective=_number(plain, "objective"),
        orthogonality=_number(plain, "orthogonality"),
    )


def _of(plain: Mapping[str, Any], name: str, kind: type) -> Any:
    if name not in plain:
        raise InvalidMessage(f"`{name[:100]}` is not there")
    value = plain[name]
    if type(value) is not kind:
        raise InvalidMessage(f"`{name[:100]}` is not of type {kind.__name__}")
    return value


def _text(plain: Mapping[str, Any], name: str) -> str:
    return str(_of(plain, name, str))


def _map(plain: Mapping[str, Any], name: str) -> dict[str, Any]:
    value: dict[Any, Any] = _of(plain, name, dict)
    if set(map(type, value)) - {str}:
        raise InvalidMessage(f"`{name}` has keys that are not text")
    return value


def _maps(plain: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    values: list[Any] = _of(plain, name, list)
    if set(map(type, values)) - {dict}:
        raise InvalidMessage(f"`{name}` is not a list of maps")
    return values


def _whole(plain: Mapping[str, Any], name: str, least: int = 0) -> int:
    value: int = _of(plain, name, int)
    if not least <= value <= _LARGEST:
        raise InvalidMessage(f"`{name[:100]}` is out of range")
    return value


def _wholes(plain: Mapping[str, Any], name: str) -> tuple[int, ...]:
    values: list[Any] = _of(plain, name, list)
    if set(map(type, values)) - {int}:
        raise InvalidMessage(f"`{name}` is not a list of whole numbers")
    return tuple(values)


def _number(plain: Mapping[str, Any], name: str) -> float:
    """A finite number; one that happens to be whole may have been written without a point."""
    value = plain.get(name)
    if type(value) is not float and type(value) is not int:
        raise InvalidMessage(f"`{name}` is not a number")
    if not math.isfinite(value):
        raise InvalidMessage(f"`{name}` is not finite")
    return float(value)
