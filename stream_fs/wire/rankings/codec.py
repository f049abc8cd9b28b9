"""Rankings to bytes and back: JSON or MessagePack, with the headers of a CloudEvent.

Fields have a fixed order and floats their shortest exact form, so equal rankings give equal bytes.
The headers follow the Kafka binding of CloudEvents (binary mode): source and id together identify
an event, and a ranking that is published again after a restart has the same id.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final, Literal
from urllib.parse import quote

import msgpack
import orjson

from stream_fs.errors import InvalidMessage
from stream_fs.messagepack import unpack
from stream_fs.records import Headers, Payload, printable
from stream_fs.selector.imputation import Imputation
from stream_fs.wire.rankings.message import (
    Feature,
    Fit,
    RankedView,
    RankingMessage,
    RankingSource,
    RecordCounts,
    SelectionChange,
)

RankingFormat = Literal["json", "msgpack"]
"""Values of `output.format`."""

SCHEMA: Final = 1
EVENT_TYPE: Final = f"stream-fs.ranking.v{SCHEMA}"
CONTENT_TYPES: Final[dict[RankingFormat, str]] = {
    "json": "application/json",
    "msgpack": "application/vnd.msgpack",
}


def ranking_payload(message: RankingMessage, format: RankingFormat = "json") -> Payload:
    """Key, value and headers of the message."""
    value = encode_ranking(message, format)
    return Payload(message.key.encode(), value, _headers(message, value, format))


def encode_ranking(message: RankingMessage, format: RankingFormat = "json") -> bytes:
    """The value of the message."""
    document = _document(message)
    if format == "json":
        return orjson.dumps(document)
    packed: bytes = msgpack.packb(document)
    return packed


def digest(value: bytes) -> str:
    """SHA-256 in hexadecimal, to compare values."""
    return hashlib.sha256(value).hexdigest()


def has_digest(value: bytes, expected: str | None, format: RankingFormat) -> bool:
    """Whether a ranking has this digest, as it is or as releases before `imputed` encoded it.

    Those have committed progress with the digest of a ranking without the field.
    """
    if digest(value) == expected:
        return True
    message = decode_ranking(value, format)
    earlier = replace(message, records=replace(message.records, imputed=None))
    return digest(encode_ranking(earlier, format)) == expected


def _headers(message: RankingMessage, value: bytes, format: RankingFormat) -> Headers:
    headers = {
        "ce_specversion": "1.0",
        "ce_id": f"{message.sequence}-{digest(value)[:16]}",
        "ce_source": f"/stream-fs/{quote(message.key)}",
        "ce_type": EVENT_TYPE,
        "content-type": CONTENT_TYPES[format],
    }
    return tuple((name, text.encode()) for name, text in headers.items())


def _document(message: RankingMessage) -> dict[str, Any]:
    fit, offsets = message.fit, message.offsets
    return {
        "schema": SCHEMA,
        "stream": message.stream,
        "scope": message.scope,
        "topic": message.topic,
        "partition": message.partition,
        "preset": message.preset,
        "score": message.score,
        "model": message.model,
        "sequence": message.sequence,
        "offsets": None if offsets is None else {"from": offsets[0], "next": offsets[1]},
        "as_of": message.as_of,
        "records": _plain_records(message.records),
        "views": [
            {
                "name": view.name,
                "weight": view.weight,
                # There are many, and most have no name.
                "features": [
                    {"index": index, "relevance": relevance}
                    if name is None
                    else {"index": index, "name": name, "relevance": relevance}
                    for index, relevance, name in view.features
                ],
            }
            for view in message.views
        ],
        "selection": None
        if message.selection is None
        else {
            name: {
                "entered": list(change.entered),
                "left": list(change.left),
                "overlap": change.overlap,
            }
            for name, change in message.selection.items()
        },
        "fit": None
        if fit is None
        else {
            "iterations": fit.iterations,
            "converged": fit.converged,
            "objective": fit.objective,
            "orthogonality": fit.orthogonality,
        },
        "sources": [
            {"topic": source.topic, "partition": source.partition, "sequence": source.sequence}
            for source in message.sources
        ],
    }


def _plain_records(records: RecordCounts) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "chunk": records.chunk,
        "total": records.total,
        "dead_letters": records.dead_letters,
        "missing": dict(records.missing),
    }
    if records.imputed is not None:
        plain["imputed"] = {
            name: {"rows": one.rows, "weight": one.weight} for name, one in records.imputed.items()
        }
    return plain


def ranking_format(headers: Headers) -> RankingFormat:
    """The format, by the content type of a message. Raises `InvalidMessage`."""
    types = dict(headers)
    for format, content_type in CONTENT_TYPES.items():
        if types.get("content-type") == content_type.encode():
            return format
    raise InvalidMessage(f"the content type {types.get('content-type')!r} is not a ranking's")


def as_json(value: bytes, format: RankingFormat) -> bytes:
    """The ranking as JSON on one line; unchanged where it was published as JSON.

    `decode_ranking` must accept the value.
    """
    return value if format == "json" else encode_ranking(decode_ranking(value, format))


def decode_ranking(value: bytes, format: RankingFormat = "json") -> RankingMessage:
    """The inverse of `encode_ranking`; unknown fields are ignored.

    Raises `InvalidMessage` for any other bytes, and no other error.
    """
    try:
        plain = orjson.loads(value) if format == "json" else unpack(value)
    except ValueError as error:
        raise InvalidMessage(f"not {format}: {printable(str(error))}") from error
    if not isinstance(plain, dict) or "schema" not in plain:
        raise InvalidMessage("not a ranking: it has no `schema`")
    schema = plain["schema"]
    if type(schema) is not int:
        raise InvalidMessage("not a ranking: its `schema` is not a number")
    if schema != SCHEMA:
        raise InvalidMessage(f"a ranking of schema {schema}; this version reads {SCHEMA}")
    try:
        return read_message(plain)
    except InvalidMessage as error:
        raise InvalidMessage(f"not a ranking of schema {SCHEMA}: {printable(str(error))}") from None


_LARGEST: Final = 2**63 - 1
"""Largest count, offset and time."""


def read_message(plain: Mapping[str, Any]) -> RankingMessage:
    """The message of a document; `InvalidMessage` names the invalid field."""
    absent = [one.name for one in fields(RankingMessage) if one.name not in plain]
    if absent:
        raise InvalidMessage(f"`{absent[0]}` is missing")
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
            RankingSource(_text(one, "topic"), _whole(one, "partition"), _whole(one, "sequence"))
            for one in _maps(plain, "sources")
        ),
    )


def _offsets(plain: Mapping[str, Any]) -> tuple[int, int]:
    return _whole(plain, "from"), _whole(plain, "next")


def _records(plain: Mapping[str, Any]) -> RecordCounts:
    missing = _map(plain, "missing")
    imputed = _map(plain, "imputed") if "imputed" in plain else None
    return RecordCounts(
        chunk=None if plain.get("chunk") is None else _whole(plain, "chunk"),
        total=_whole(plain, "total"),
        dead_letters=_whole(plain, "dead_letters"),
        missing={name: _whole(missing, name) for name in missing},
        imputed=None if imputed is None else {n: _imputation(_map(imputed, n)) for n in imputed},
    )


def _imputation(plain: Mapping[str, Any]) -> Imputation:
    return Imputation(_whole(plain, "rows"), _number(plain, "weight"))


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


def _selection(plain: Mapping[str, Any], views: Sequence[RankedView]) -> dict[str, SelectionChange]:
    if any(view.name not in plain for view in views):
        raise InvalidMessage("`selection` lacks a view")
    changes = {name: _map(plain, name) for name in plain}
    return {
        name: SelectionChange(
            _wholes(one, "entered"), _wholes(one, "left"), _number(one, "overlap")
        )
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
        raise InvalidMessage(f"`{name[:100]}` is missing")
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
    """A finite number; a whole one may be written without a decimal point."""
    value = plain.get(name)
    if type(value) is not float and type(value) is not int:
        raise InvalidMessage(f"`{name}` is not a number")
    if not math.isfinite(value):
        raise InvalidMessage(f"`{name}` is not finite")
    return float(value)
