"""`MultiViewSelector`: the selector with an interface like that of scikit-learn and river."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Self

import numpy as np

from stream_fs.errors import InvalidChunk, NotFitted
from stream_fs.selector import ranking
from stream_fs.selector.arrays import Floats, Indices, Mask
from stream_fs.selector.chunk import Chunk, concatenate, detached, read_chunk
from stream_fs.selector.parameters import Params, Preset, View, params
from stream_fs.selector.ranking import Ranking
from stream_fs.selector.serialization import read_file, write_file
from stream_fs.selector.state import State, initial_state
from stream_fs.selector.update import Report, update


class MultiViewSelector:
    """Ranks the features of several views, without labels, as the data arrive.

    Call `partial_fit` with chunks of rows, and read the result at any time. The first rows are
    buffered until there are `first_rows`·`clusters` of them, since all later clusters follow from
    those of the first chunk.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> group = rng.integers(3, size=300)
    >>> data = {
    ...     "size": np.column_stack([group + rng.normal(0, 0.2, 300), rng.normal(size=300)]),
    ...     "colour": np.column_stack([rng.normal(size=300), group == 1]),
    ... }
    >>> data["colour"][::2] = np.nan  # every second record lacks this view
    >>> selector = MultiViewSelector([View("size", 2), View("colour", 2)], clusters=3)
    >>> selector.partial_fit(data).get_order()
    {'size': array([0, 1]), 'colour': array([1, 0])}
    """

    def __init__(
        self,
        views: Sequence[View],
        clusters: int,
        *,
        preset: Preset = "default",
        seed: int = 0,
        **parameters: Any,
    ) -> None:
        """Declare the views and the number of clusters; `parameters` override the preset's."""
        self._state = initial_state(params(views, clusters, preset=preset, seed=seed, **parameters))
        self._waiting: tuple[Chunk, ...] = ()
        self._report: Report | None = None

    @property
    def params(self) -> Params:
        """All parameters in effect."""
        return self._state.params

    @property
    def state(self) -> State:
        """The immutable model, argument and result of the pure function `update`."""
        return self._state

    @property
    def last_report(self) -> Report:
        """Report of the last update.

        By view, among others: the share of rows that lacked it (`missing`), how many of those were
        imputed, and the weight n/j of an imputed row (`imputed`).
        """
        if self._report is None:
            raise self._not_fitted()
        return self._report

    def partial_fit(
        self, views: Mapping[str, Any], *, present: Mapping[str, Any] | None = None
    ) -> Self:
        """Fold a chunk of rows into the model.

        `views` maps names to N × d matrices, dense or SciPy sparse. A missing view of an instance
        is a row of NaN, or False in `present[name]`; an absent view is missing from the whole
        chunk. Raises `InvalidChunk` for invalid rows, and then leaves the selector unchanged.
        """
        declared = _named(self.params.views, views)
        chunk = read_chunk(declared, views, present)
        state = self._state
        if declared != self.params.views:
            state = replace(state, params=replace(state.params, views=declared))
        size = sum(part.size for part in self._waiting) + chunk.size
        if state.chunk == 0 and size < state.params.first_chunk_rows:
            self._state, self._waiting = state, (*self._waiting, detached(chunk))
            return self
        self._state, self._report = update(state, concatenate((*self._waiting, chunk)))
        self._waiting = ()
        return self

    def flush(self) -> Self:
        """Use the buffered rows as the first chunk, although they are fewer than required."""
        if self._waiting:
            self._state, self._report = update(self._state, concatenate(self._waiting))
            self._waiting = ()
        return self

    def scores(self) -> dict[str, Floats]:
        """Every view's scores, one per feature."""
        return ranking.view_scores(self._fitted())

    def get_order(self) -> dict[str, Indices]:
        """Every view's features, best first, as indices."""
        return ranking.view_orders(self._fitted(), self.scores())

    def get_support(self, top: float | int | Mapping[str, int]) -> dict[str, Mask]:
        """Masks of the chosen features.

        `top` is a share of all features (a float, divided between views by the budget rule), or a
        count per view.
        """
        return ranking.support(self._fitted(), top)

    def transform(
        self, views: Mapping[str, Any], top: float | int | Mapping[str, int]
    ) -> dict[str, Any]:
        """The selected columns of each given view; missing rows stay NaN.

        Named columns must have the names that the selector knows, in the same order.
        """
        _named(self.params.views, views)
        chosen = self.get_support(top)
        result: dict[str, Any] = {}
        for name, rows in views.items():
            if name not in chosen:
                raise InvalidChunk(
                    f"this view is not declared; declared are {list(chosen)}", view=name
                )
            matrix = _columns(rows)
            if matrix.ndim != 2 or matrix.shape[1] != len(chosen[name]):
                raise InvalidChunk(
                    f"expected {len(chosen[name])} columns, got shape {matrix.shape}", view=name
                )
            result[name] = matrix[:, np.flatnonzero(chosen[name])]
        return result

    def ranking(self) -> Ranking:
        """The whole ranking, with weights, scores and names."""
        return ranking.rank(self._fitted())

    def save(self, path: str | PathLike[str]) -> None:
        """Write the selector to a file, including buffered rows; readable without pickle."""
        write_file(path, self._state, self._waiting)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a saved selector, which continues exactly like the original."""
        loaded = cls.__new__(cls)
        loaded._state, loaded._waiting = read_file(path)
        loaded._report = None
        return loaded

    def __repr__(self) -> str:
        """Views, parameters and progress."""
        state = self._state
        views = ", ".join(f"{view.name}[{view.dimension}]" for view in state.params.views)
        waiting = sum(part.size for part in self._waiting)
        progress = f"{state.chunk} chunks, {state.total} rows"
        if state.chunk == 0:
            progress = f"waiting, {waiting} of {state.params.first_chunk_rows} rows"
        return (
            f"MultiViewSelector({views}; clusters={state.params.clusters}, "
            f"preset={state.params.preset!r}, seed={state.params.seed}; {progress})"
        )

    def _fitted(self) -> State:
        if self._state.chunk == 0:
            raise self._not_fitted()
        return self._state

    def _not_fitted(self) -> NotFitted:
        waiting = sum(part.size for part in self._waiting)
        if self._state.chunk:
            return NotFitted("there is no report: no partial_fit since the selector was loaded")
        return NotFitted(
            f"the first chunk has {waiting} of {self.params.first_chunk_rows} rows: give more with "
            "partial_fit, call flush() to continue with these, or lower the parameter first_rows"
        )


def _named(declared: Sequence[View], inputs: Mapping[str, Any]) -> tuple[View, ...]:
    """The views with the names of their columns, where the input has any (a data frame).

    Once known, names must not change.
    """
    named = []
    for view in declared:
        columns = getattr(inputs.get(view.name), "columns", None)
        names = None if columns is None else tuple(str(column) for column in columns)
        if names is None or len(names) != view.dimension:
            named.append(view)
        elif view.names is None:
            named.append(replace(view, names=names))
        elif view.names != names:
            first = next(
                i for i, (a, b) in enumerate(zip(view.names, names, strict=True)) if a != b
            )
            raise InvalidChunk(
                f"column {names[first]!r} where {view.names[first]!r} was before",
                view=view.name,
                feature=first,
            )
        else:
            named.append(view)
    return tuple(named)


def _columns(rows: Any) -> Any:
    """A matrix whose columns can be taken by index."""
    return rows.tocsr() if hasattr(rows, "tocsr") else np.asarray(rows)
