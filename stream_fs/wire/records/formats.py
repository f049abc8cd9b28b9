"""The formats of records: the only list of them in the package.

A new format takes two files: a module with its reader, and its entry here, in `RecordFormat` and
`FORMATS`. The decoder, the configuration, the files that `produce` and `replay` read, their help
and the hints in dead letters follow from the entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, Literal, Protocol

import msgpack
import orjson

from stream_fs import messagepack
from stream_fs.selector.arrays import Indices
from stream_fs.wire.declared import DeclaredView, Limits
from stream_fs.wire.records.json_reader import JsonReader, begins_like_json, json_lines
from stream_fs.wire.records.msgpack_reader import (
    MsgpackReader,
    begins_like_msgpack,
    msgpack_objects,
)
from stream_fs.wire.records.parser import ParsedRecords

RecordFormat = Literal["msgpack", "json"]
"""Values of `stream.format`."""

DEFAULT_FORMAT: Final[RecordFormat] = "msgpack"


class RecordReader(Protocol):
    """Parses values that are present and not too large. Never raises."""

    def read(self, values: Sequence[bytes], lengths: Indices, /) -> ParsedRecords:
        """Parse these values; `lengths` are the numbers of their bytes."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFiles:
    """Files of records in one format: its name for `--format`, and the ends of file names.

    `split` yields the records of an open file, each with the position after it; it is given the
    name of the file for errors, and the most bytes that a record may have.
    """

    name: str
    suffixes: tuple[str, ...]
    description: str
    split: Callable[[BinaryIO, str, int], Iterator[tuple[bytes, int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatDefinition:
    """What the package needs to know of a format.

    `begins_like` recognises non-empty values of this format that arrive where another is declared.
    `encode` and `parse` convert between bytes and plain data; `parse` raises ValueError.
    `has_bytes` is whether values can be packed.
    """

    title: str
    reader: Callable[[Sequence[DeclaredView], Limits], RecordReader]
    begins_like: Callable[[bytes], bool]
    encode: Callable[[dict[str, Any]], bytes]
    parse: Callable[[bytes], Any]
    has_bytes: bool
    files: RecordFiles


FORMATS: Final[dict[RecordFormat, FormatDefinition]] = {
    "msgpack": FormatDefinition(
        title="MessagePack",
        reader=MsgpackReader,
        begins_like=begins_like_msgpack,
        encode=msgpack.packb,
        parse=messagepack.unpack,
        has_bytes=True,
        files=RecordFiles(
            name="msgpack",
            suffixes=(".msgpack", ".mpk"),
            description="consecutive MessagePack records",
            split=msgpack_objects,
        ),
    ),
    "json": FormatDefinition(
        title="JSON",
        reader=lambda views, _: JsonReader(views),
        begins_like=begins_like_json,
        encode=orjson.dumps,
        parse=orjson.loads,
        has_bytes=False,
        files=RecordFiles(
            name="jsonl",
            suffixes=(".jsonl", ".ndjson"),
            description="one JSON record per line; empty lines are skipped",
            split=json_lines,
        ),
    ),
}

_REGISTRY_HEADER_BYTES: Final = 5
"""A zero and four bytes of a schema id: serializers of schema registries begin with them."""


def resemblance(value: bytes, declared: RecordFormat) -> str:
    """A clause for the detail of a malformed value; empty if it resembles no other format."""
    if not value:
        return "; the value is empty"
    if value[0] == 0 and len(value) >= _REGISTRY_HEADER_BYTES:
        return "; it begins like a schema registry's framing (Avro, Protobuf), which is not read"
    for format, definition in FORMATS.items():
        if format != declared and definition.begins_like(value):
            return f"; it begins like {definition.title}, see stream.format"
    return ""
