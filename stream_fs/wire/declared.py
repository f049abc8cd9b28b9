"""What a decoder is told beforehand: the views that may come, and how much of anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np

from stream_fs.errors import InvalidParameter
from stream_fs.records import quoted
from stream_fs.selector.parameters import Transform, View, is_whole

Dtype = Literal["float32", "float64"]
Format = Literal["msgpack", "json"]

_FLOATS: Final[dict[Dtype, np.dtype[Any]]] = {
    "float32": np.dtype("<f4"),
    "float64": np.dtype("<f8"),
}


@dataclass(frozen=True, slots=True)
class DeclaredView:
    """A view on the wire: its name and dimension, the floats it is packed in, its transform.

    `names` are those of its features, for messages only.
    """

    name: str
    dimension: int
    dtype: Dtype = "float32"
    transform: Transform = "minmax"
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse what no record could fit."""
        View(self.name, self.dimension, self.transform, self.names)
        if self.dtype not in get_args(Dtype):
            raise InvalidParameter(
                f"view {self.name!r}: dtype must be one of {', '.join(get_args(Dtype))}, "
                f"got {self.dtype!r}"
            )

    @property
    def floats(self) -> np.dtype[Any]:
        """The packed floats: little-endian, four or eight bytes each."""
        return _FLOATS[self.dtype]

    @property
    def row_bytes(self) -> int:
        """Bytes of one packed row."""
        return self.dimension * (4 if self.dtype == "float32" else 8)

    def place(self, feature: int) -> str:
        """The view, a feature's index and its declared name, for the detail of a bad record."""
        place = f"view {quoted(self.name)}, feature {feature}"
        if self.names is None or not 0 <= feature < self.dimension:
            return place
        return f"{place} ({quoted(self.names[feature])})"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a record may at most have: bytes altogether, and entries in a map.

    Arrays are limited by the largest dimension. Nesting is limited by the parsers (about a thousand
    levels), and to that of a record where much memory could come of it (`nesting`).
    """

    record_bytes: int = 1 << 20
    views: int = 256

    def __post_init__(self) -> None:
        """Refuse limits that nothing could keep."""
        for name in ("record_bytes", "views"):
            value = getattr(self, name)
            if not is_whole(value) or value < 1:
                raise InvalidParameter(f"limit {name} must be a whole number from 1, got {value!r}")
