"""Records in JSON: parsed one by one. Strict: NaN and infinity are no JSON."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from stream_fs.selector.arrays import Indices
from stream_fs.wire.declared import DeclaredView
from stream_fs.wire.documents import read_document
from stream_fs.wire.found import Found
from stream_fs.wire.refusal import Refused


class JsonReader:
    """Reads records in JSON."""

    def __init__(self, views: Sequence[DeclaredView]) -> None:
        self._views = {view.name: view for view in views}

    def read(self, values: Sequence[bytes], _: Indices) -> Found:
        """What is in these values."""
        found = Found.nothing(self._views)
        for record, value in enumerate(values):
            truths = b"true" in value or b"false" in value
            try:
                found.add(record, read_document(_parse(value), self._views, truths=truths))
            except Refused as refused:
                found.refuse(record, refused)
        return found


def _parse(value: bytes) -> object:
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise Refused("malformed", f"not JSON: {error}") from None
