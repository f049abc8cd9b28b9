"""Records to fill topics with: planted clusters, packed or sparse views."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from stream_fs.wire import DeclaredView, Sparse, encode_record
from tests.benchmarks.workload import Shape, cluster_means, presence, view_rows

DIFFERENT = 1000
"""Records that differ, at most."""
_OVERHEAD = 40
"""Bytes of a record beside its values, about."""


@dataclass(frozen=True)
class Mix:
    """What the records of a stream look like: `dimension` features in each of `views`."""

    dimension: int
    views: int = 3
    missing: float = 0.0
    density: float | None = None
    """Views are sparse pairs with this share of non-zeros; None packs them."""

    @classmethod
    def of_bytes(cls, size: int, views: int = 3) -> Mix:
        """Records of about so many bytes with all their views."""
        return cls(max((size - _OVERHEAD) // (4 * views), 2), views)

    def __str__(self) -> str:
        kind = "packed" if self.density is None else f"sparse, density {self.density:g}"
        missing = f", {self.missing:.0%} missing" if self.missing else ""
        return f"{self.views} views of {self.dimension}, {kind}{missing}"

    @property
    def names(self) -> list[str]:
        return [f"view{number}" for number in range(self.views)]

    @property
    def tables(self) -> list[dict[str, Any]]:
        """The views as the configuration declares them."""
        transform = {} if self.density is None else {"transform": "unit"}
        return [{"name": name, "dimension": self.dimension, **transform} for name in self.names]

    @property
    def declared(self) -> list[DeclaredView]:
        """The views as a decoder knows them."""
        return [DeclaredView(**table) for table in self.tables]

    def records(self, count: int) -> list[bytes]:
        """As many, or so many of them that they can be sent again and again, in turn."""
        return list(self._records(min(count, DIFFERENT)))

    def _records(self, count: int) -> Iterator[bytes]:
        rng = np.random.default_rng(5)
        shape = Shape(self.dimension, count, 10, self.views, self.missing, self.density)
        labels = rng.integers(shape.clusters, size=shape.rows)
        views = [
            view_rows(shape, cluster_means(shape, rng)[labels], rng) for _ in range(self.views)
        ]
        masks = presence(shape, rng)
        for row in range(shape.rows):
            values = {
                name: _values(view, row) if mask[row] else None
                for name, view, mask in zip(self.names, views, masks, strict=True)
            }
            yield encode_record(values, f"r-{row}")


def _values(view: Any, row: int) -> Any:
    if isinstance(view, np.ndarray):
        return view[row]
    part = slice(view.indptr[row], view.indptr[row + 1])
    order = np.argsort(view.indices[part])
    return Sparse(view.indices[part][order].astype(np.uint32), view.data[part][order])
