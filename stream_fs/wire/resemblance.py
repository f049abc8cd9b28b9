"""What a value that is not in the declared format resembles, by its first bytes."""

from __future__ import annotations

from typing import Final

from stream_fs.wire.declared import Format

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_FRAME_BYTES: Final = 5
"""A zero and four bytes of a schema's id: serializers of schema registries begin with them."""


def resemblance(value: bytes, declared: Format) -> str:
    """A clause for the detail of a value that cannot be parsed; empty if it resembles nothing."""
    if not value:
        return "; the value is empty"
    if value[0] == 0 and len(value) >= _FRAME_BYTES:
        return "; it begins like a schema registry's framing (Avro, Protobuf), which is not read"
    if _like_json(value) if declared == "msgpack" else _like_msgpack(value):
        other = "JSON" if declared == "msgpack" else "MessagePack"
        return f"; it begins like {other}, see stream.format"
    return ""


def _like_json(value: bytes) -> bool:
    return value.removeprefix(_BYTE_ORDER_MARK).lstrip()[:1] in (b"{", b"[")


def _like_msgpack(value: bytes) -> bool:
    """Whether it begins like a map; no JSON begins with such a byte."""
    return 0x80 <= value[0] <= 0x8F or value[0] == 0xDE
