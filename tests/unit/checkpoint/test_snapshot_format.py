from __future__ import annotations

import msgpack

from stream_fs.checkpoint.snapshot import encode_snapshot
from stream_fs.selector.state import flatten
from tests.support.models import model_params, trained_state


def test_parts() -> None:
    state = trained_state(model_params())
    _, arrays = flatten(state)
    raw = b"".join(array.astype("<f8").tobytes() for array in arrays.values())
    (part,) = encode_snapshot(state, 0, {"a": 1}).parts
    assert part == raw + msgpack.packb({"a": 1})
