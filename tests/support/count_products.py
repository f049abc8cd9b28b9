"""Products of matrices with the rows of a view, counted: `python -m tests.support.count_products`.

Prints as JSON how many products ten iterations take on the core that STREAM_FS_CORE selects, by
preset and form of the rows. It is a program of its own because products of the compiled core can be
observed only from before it is imported.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.support import blas

ITERATIONS = 12, 22


class Products:
    """Counts products with a view's rows, on either core."""

    def __init__(self, rows: int, features: int) -> None:
        self.count = 0
        self._rows, self._features = rows, features

    def observe_blas(self, m: int, n: int, k: int) -> None:
        """Count a product of m×n numbers by sums of k terms if it is with the rows."""
        self.count += self._features in (m, k) and self._rows in (n, k)

    def counted(self, multiply: Callable[..., Any]) -> Callable[..., Any]:
        """A function that multiplies rows, with its calls counted."""

        def call(*arguments: Any, **named: Any) -> Any:
            self.count += 1
            return multiply(*arguments, **named)

        return call


def count(products: Products) -> dict[str, int]:
    """How many products ten iterations take."""
    from stream_fs.selector import imputation, update
    from tests.support.small_streams import FORMS, PRESETS, model_and_chunk

    for name in ("cross", "times"):
        setattr(imputation, name, products.counted(getattr(imputation, name)))
    found = {}
    for preset in PRESETS:
        for form in FORMS:
            took = []
            for limit in ITERATIONS:
                exactly = {"min_iterations": limit, "max_iterations": limit, "tolerance": 0.0}
                state, chunk = model_and_chunk(preset, form, **exactly)
                products.count = 0
                _, report = update(state, chunk)
                assert report.iterations == limit
                took.append(products.count)
            found[f"{preset} {form}"] = took[1] - took[0]
    return found


if __name__ == "__main__":
    observed = Products(rows=100, features=40)
    blas.observe(observed.observe_blas)
    print(json.dumps(count(observed)))
