"""Records as producers write them: the inverse of `decoder`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from stream_fs.wire.declared import Dtype
from stream_fs.wire.records.formats import DEFAULT_FORMAT, FORMATS, RecordFormat
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
    format: RecordFormat = DEFAULT_FORMAT,
    form: Form = "packed",
    dtypes: Mapping[str, Dtype] | None = None,
) -> bytes:
    """One record. A view that is None is written as missing.

    `packed` writes little-endian floats, four bytes each, or eight for the views that `dtypes`
    declares float64; `list` writes arrays of numbers, as do formats without bytes in either form.
    Nothing is checked: which records are bad depends on the views that the consumer declares.
    """
    packed = form == "packed" and FORMATS[format].has_bytes
    dtypes = {} if dtypes is None else dtypes
    document: dict[str, Any] = {"v": VERSION}
    if id is not None:
        document["id"] = id
    document["views"] = {
        name: None if values is None else _encode(values, dtypes.get(name, "float32"), packed)
        for name, values in views.items()
    }
    return FORMATS[format].encode(document)


def _encode(values: ArrayLike | Sparse, dtype: Dtype, packed: bool) -> Any:
    if isinstance(values, Sparse):
        indices = np.asarray(values.indices)
        return {
            "i": indices.astype("<u4").tobytes() if packed else indices.tolist(),
            "x": _encode(values.values, dtype, packed),
        }
    if packed:
        return np.asarray(values).astype("<f4" if dtype == "float32" else "<f8").tobytes()
    return np.asarray(values).tolist()
