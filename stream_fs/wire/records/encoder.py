"""Records as producers write them: the inverse of `decoder`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgpack
import numpy as np
import orjson
from numpy.typing import ArrayLike

from stream_fs.wire.declared import Dtype, Format
from stream_fs.wire.records.parser import VERSION

Form = Literal["packed", "list"]


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """A sparse row: strictly increasing indices, and the values there."""

    indices: ArrayLike
    values: ArrayLike


Values: TypeAlias = "ArrayLike | Sparse | None"


def encode_record(
    views: Mapping[str, Values],
    id: str | None = None,
    *,
    format: Format = "msgpack",
    form: Form = "packed",
    dtypes: Mapping[str, Dtype] | None = None,
) -> bytes:
    """One record. A view that is None is written as missing.

    `packed` writes little-endian floats, four bytes each, or eight for the views that `dtypes`
    declares float64; `list` writes arrays of numbers. JSON has lists only. Nothing is checked: what
    a consumer refuses depends on what it has declared.
    """
    packed = form == "packed" and format == "msgpack"
    dtypes = {} if dtypes is None else dtypes
    fields: dict[str, Any] = {"v": VERSION}
    if id is not None:
        fields["id"] = id
    fields["views"] = {
        name: None if given is None else _values(given, dtypes.get(name, "float32"), packed)
        for name, given in views.items()
    }
    if format == "json":
        return orjson.dumps(fields)
    encoded: bytes = msgpack.packb(fields)
    return encoded


def _values(given: ArrayLike | Sparse, dtype: Dtype, packed: bool) -> Any:
    if isinstance(given, Sparse):
        indices = np.asarray(given.indices)
        return {
            "i": indices.astype("<u4").tobytes() if packed else indices.tolist(),
            "x": _values(given.values, dtype, packed),
        }
    if packed:
        return np.asarray(given).astype("<f4" if dtype == "float32" else "<f8").tobytes()
    return np.asarray(given).tolist()
