"""Rankings to bytes and back: JSON or MessagePack, with the headers of a CloudEvent.

Fields are in a fixed order and floats in their shortest exact form, so the same ranking gives the
same bytes. The headers follow the Kafka binding of CloudEvents (binary mode): source and id
together name an event, and a ranking that is published again after a restart has the same id.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final
from urllib.parse import quote

import msgpack
import orjson

from stream_fs.errors import InvalidMessage
from stream_fs.messagepack import unpack
from stream_fs.records import Headers, Payload
from stream_fs.wire.declared import Format
from stream_fs.wire.ranking_reading import read_message
from stream_fs.wire.rankings import RankingMessage
from stream_fs.wire.refusal import printable

SCHEMA: Final = 1
EVENT_TYPE: Final = f"stream-fs.ranking.v{SCHEMA}"
CONTENT_TYPES: Final[dict[Format, str]] = {
    "json": "application/json",
    "msgpack": "application/vnd.msgpack",
}


def publish(message: RankingMessage, format: Format = "json") -> Payload:
    """The message to send: key, value and headers."""
    value = encode_ranking(message, format)
    return Payload(message.key.encode(), value, _headers(message, value, format))


def encode_ranking(message: RankingMessage, format: Format = "json") -> bytes:
    """The value of the message."""
    plain = _plain(message)
    if format == "json":
        return orjson.dumps(plain)
    packed: bytes = msgpack.packb(plain)
    return packed


def digest(value: bytes) -> str:
    """By this two values are told apart: SHA-256, in hexadecimal."""
    return hashlib.sha256(value).hexdigest()


def _headers(message: RankingMessage, value: bytes, format: Format) -> Headers:
    told = {
        "ce_specversion": "1.0",
        "ce_id": f"{message.sequence}-{digest(value)[:16]}",
        "ce_source": f"/stream-fs/{quote(message.key)}",
        "ce_type": EVENT_TYPE,
        "content-type": CONTENT_TYPES[format],
    }
    return tuple((name, text.encode()) for name, text in told.items())


def _plain(message: RankingMessage) -> dict[str, Any]:
    records, fit, offsets = message.records, message.fit, message.offsets
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
        "records": {
            "chunk": records.chunk,
            "total": records.total,
            "dead_letters": records.dead_letters,
            "missing": dict(records.missing),
        },
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


def ranking_format(headers: Headers) -> Format:
    """The format that the content type of a message tells."""
    types = dict(headers)
    for format, content_type in CONTENT_TYPES.items():
        if types.get("content-type") == content_type.encode():
            return format
    raise InvalidMessage(f"the content type {types.get('content-type')!r} is not a ranking's")


def as_json(value: bytes, format: Format) -> bytes:
    """The document as JSON, on one line: as it was published, where it was published as JSON.

    The value must be one that `decode_ranking` takes.
    """
    return value if format == "json" else encode_ranking(decode_ranking(value, format))


def decode_ranking(value: bytes, format: Format = "json") -> RankingMessage:
    """The inverse of `encode_ranking`; fields that it does not know are passed over.

    Raises `InvalidMessage`, for whatever the bytes are, and nothing else.
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
