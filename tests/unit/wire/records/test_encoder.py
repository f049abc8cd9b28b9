from __future__ import annotations

from typing import Literal

import msgpack
import numpy as np
import orjson
import pytest

from stream_fs.wire import DeclaredView, RecordDecoder, RecordFormat, Sparse, encode_record

VIEWS = [DeclaredView("a", 3), DeclaredView("b", 2, "float64"), DeclaredView("c", 400)]


@pytest.mark.parametrize("format", ["msgpack", "json"])
@pytest.mark.parametrize("form", ["packed", "list"])
def test_encoded_records_are_decoded(format: RecordFormat, form: Literal["packed", "list"]) -> None:
    value = encode_record(
        {"a": [0.1, 2, -3], "b": np.array([0.1, 0.2]), "c": Sparse([7, 300], [0.5, 2])},
        "r-1",
        format=format,
        form=form,
        dtypes={"b": "float64"},
    )
    missing = encode_record({"a": np.ones(3), "b": None}, format=format, form=form)
    batch = RecordDecoder(VIEWS, format).decode([value, missing])
    assert batch.bad == ()
    assert batch.views["a"].dense().tolist() == [
        np.array([0.1, 2, -3], np.float32).tolist(),
        [1, 1, 1],
    ]
    assert batch.views["b"].dense().tolist() == [[0.1, 0.2]]
    assert batch.views["c"].dense()[0, [7, 300]].tolist() == [0.5, 2]
    assert batch.missing() == {"a": 0, "b": 1, "c": 1}


def test_values_are_packed() -> None:
    plain = msgpack.unpackb(encode_record({"a": [1, 2, 3], "c": Sparse([1], [1])}))
    assert plain == {
        "v": 1,
        "views": {
            "a": np.array([1, 2, 3], "<f4").tobytes(),
            "c": {"i": b"\1\0\0\0", "x": b"\0\0\x80\x3f"},
        },
    }


def test_json_has_lists() -> None:
    value = encode_record({"a": [1.5, 2.0, 3.0], "b": None}, "x", format="json")
    assert orjson.loads(value) == {"v": 1, "id": "x", "views": {"a": [1.5, 2.0, 3.0], "b": None}}
