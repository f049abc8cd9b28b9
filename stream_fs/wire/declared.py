"""The declaration of a stream's records: its views, and the limits of a record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np

from stream_fs.errors import InvalidParameter
from stream_fs.records import quoted
from stream_fs.selector.parameters import Transform, View, is_whole

Dtype = Literal["float32", "float64"]

_FLOATS: Final[dict[Dtype, np.dtype[Any]]] = {
    "float32": np.dtype("<f4"),
    "float64": np.dtype("<f8"),
}


@dataclass(frozen=True, slots=True)
class DeclaredView:
    """A declared view: name, dimension, type of its packed floats, transform.

    `names` are those of its features, used in messages only.
    """

    name: str
    dimension: int
    dtype: Dtype = "float32"
    transform: Transform = "minmax"
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Raise `InvalidParameter` for an invalid declaration."""
        View(self.name, self.dimension, self.transform, self.names)
        if self.dtype not in get_args(Dtype):
            raise InvalidParameter(
                f"view {self.name!r}: dtype must be one of {', '.join(get_args(Dtype))}, "
                f"got {self.dtype!r}"
            )

    @property
    def floats(self) -> np.dtype[Any]:
        """Type of the packed floats: little-endian, four or eight bytes each."""
        return _FLOATS[self.dtype]

    @property
    def row_bytes(self) -> int:
        """Bytes of one packed row."""
        return self.dimension * (4 if self.dtype == "float32" else 8)

    def feature_label(self, feature: int) -> str:
        """The view, and a feature by index and declared name, for the detail of a bad record."""
        label = f"view {quoted(self.name)}, feature {feature}"
        if self.names is None or not 0 <= feature < self.dimension:
            return label
        return f"{label} ({quoted(self.names[feature])})"


@dataclass(frozen=True, slots=True)
class Limits:
    """The most bytes of a record, and the most entries of its maps.

    Lists are limited by the largest dimension. Nesting is limited by the parsers (about a thousand
    levels), and to that of a record where it could take much memory (`msgpack_reader`).
    """

    record_bytes: int = 1_000_000
    views: int = 256

    def __post_init__(self) -> None:
        """Raise `InvalidParameter` for an invalid limit."""
        for name in ("record_bytes", "views"):
            value = getattr(self, name)
            if not is_whole(value) or value < 1:
                raise InvalidParameter(
                    f"limit {name} must be a whole number of at least 1, got {value!r}"
                )
