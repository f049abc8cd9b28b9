"""The state: all that is carried from chunk to chunk and saved in a snapshot.

Statistics are sums over instances, so the sums of two models with aligned clusters add up to those
of one model over both their data. Accumulators are float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from stream_fs.errors import IncompatibleState
from stream_fs.selector.arrays import Floats
from stream_fs.selector.parameters import Params, View

LEAST_COUNT = 1e-150
"""Least count of a view's instances: its square and its inverse are normal floats."""


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """Running smallest and largest value of each feature over present rows; (d,) each.

    Zero, and without meaning, while the view has not been seen.
    """

    lo: Floats
    hi: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """How the features vary with the consensus clusters, summed over present rows.

    With P the consensus (rows sum to 1) and x̃ the transformed rows: `C` = ΣP and `C2` = ΣP² (K),
    `Z` = X̃ᵀP (d×K), `q` = Σx̃² (d), `n2` the count that decays as a square.
    """

    C: Floats
    C2: Floats
    Z: Floats
    q: Floats
    n2: float


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """Random projection of the columns: `Y` = X̃ᵀG (d×r), `g` = ΣG (r), G random signs."""

    Y: Floats
    g: Floats


@dataclass(frozen=True, slots=True, eq=False)
class ViewState:
    """One view's statistics.

    `n` present instances, `sum` = Σx̃ over them (d), `energy` = Σw²‖x̃‖², `R` = ΣUᵀW̃U (K×K),
    `Q` = ΣX̃ᵀW̃U (d×K), `V` the latent feature matrix (d×K), `loss` the sum of the chunks' losses at
    their time. `range`, `moments` and `sketch` are present if transform, preset and score
    require them.
    """

    n: float
    sum: Floats
    energy: float
    R: Floats
    Q: Floats
    V: Floats
    loss: float
    range: Range | None
    moments: Moments | None
    sketch: Sketch | None

    @property
    def seen(self) -> bool:
        """Whether any instance had this view."""
        return self.n > 0


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """A model: immutable, a pure function of parameters, origin and the chunks so far.

    `alpha` are the view weights in the order of `params.views`; `j` counts instances (decayed),
    `total` without decay; `chunk` is the number of chunks; `origin` distinguishes models that share
    a seed (a partition's name, for example), so that their random signs are independent.
    """

    params: Params
    origin: str
    views: Mapping[str, ViewState]
    alpha: Floats
    j: float
    total: int
    chunk: int

    def __post_init__(self) -> None:
        """Make arrays read-only, since states share them."""
        leaves = [leaf for view in self.views.values() for _, leaf in _leaves(view)]
        for array in (self.alpha, *leaves):
            if isinstance(array, np.ndarray):
                array.setflags(write=False)


def initial_state(params: Params, origin: str = "") -> State:
    """The model before the first chunk."""
    views = {view.name: _unseen(view, params, np.zeros) for view in params.views}
    return State(params, origin, views, np.zeros(len(params.views)), 0.0, 0, 0)


def outline(params: Params, origin: str = "") -> State:
    """A model without data that takes no memory, for the shapes of its arrays."""
    views = {view.name: _unseen(view, params, _outline) for view in params.views}
    return State(params, origin, views, np.zeros(len(params.views)), 0.0, 0, 0)


def _unseen(view: View, params: Params, zeros: Callable[[Any], Floats]) -> ViewState:
    """A view without any data; `zeros` makes an array of a shape."""
    d, k, r = view.dimension, params.clusters, params.sketch
    return ViewState(
        n=0.0,
        sum=zeros(d),
        energy=0.0,
        R=zeros((k, k)),
        Q=zeros((d, k)),
        V=zeros((d, k)),
        loss=0.0,
        range=Range(zeros(d), zeros(d)) if view.transform == "minmax" else None,
        moments=(
            Moments(zeros(k), zeros(k), zeros((d, k)), zeros(d), 0.0)
            if params.keeps_moments
            else None
        ),
        sketch=Sketch(zeros((d, r)), zeros(r)) if r else None,
    )


def decay(state: State) -> State:
    """The state with all statistics decayed: by ρ, squared sums by ρ², the sketch by √ρ.

    A view whose count falls below `LEAST_COUNT` becomes one that has never been seen.
    """
    params = state.params
    rho = params.decay
    if rho == 1.0 or state.chunk == 0:
        return state
    views = {
        view.name: (
            _decay_view(state.views[view.name], rho)
            if rho * state.views[view.name].n >= LEAST_COUNT
            else _unseen(view, params, np.zeros)
        )
        for view in params.views
    }
    return replace(state, views=views, j=rho * state.j)


def _decay_view(view: ViewState, rho: float) -> ViewState:
    moments = view.moments
    if moments is not None:
        moments = Moments(
            C=rho * moments.C,
            C2=rho**2 * moments.C2,
            Z=rho * moments.Z,
            q=rho * moments.q,
            n2=rho**2 * moments.n2,
        )
    sketch = view.sketch
    if sketch is not None:
        sketch = Sketch(np.sqrt(rho) * sketch.Y, np.sqrt(rho) * sketch.g)
    return replace(
        view,
        n=rho * view.n,
        sum=rho * view.sum,
        energy=rho * view.energy,
        R=rho * view.R,
        Q=rho * view.Q,
        loss=rho * view.loss,
        moments=moments,
        sketch=sketch,
    )


def flatten(state: State) -> tuple[dict[str, Any], dict[str, Floats]]:
    """The state as plain data: a description (JSON or MessagePack types) and named arrays."""
    description = {
        "params": state.params.to_dict(),
        "origin": state.origin,
        "j": state.j,
        "total": state.total,
        "chunk": state.chunk,
    }
    arrays: dict[str, Floats] = {"alpha": state.alpha}
    for number, view in enumerate(state.params.views):
        for name, value in _leaves(state.views[view.name]):
            arrays[f"{number}.{name}"] = np.asarray(value, np.float64)
    return description, arrays


def unflatten(description: Mapping[str, Any], arrays: Mapping[str, Floats]) -> State:
    """The inverse of `flatten`; a missing array or another shape is an error."""
    try:
        params = Params.from_dict(description["params"])
        views = {
            view.name: _filled(_unseen(view, params, _outline), f"{number}.", arrays)
            for number, view in enumerate(params.views)
        }
        state = State(
            params,
            str(description["origin"]),
            views,
            _shaped("alpha", arrays, (len(params.views),)),
            float(description["j"]),
            int(description["total"]),
            int(description["chunk"]),
        )
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise IncompatibleState(f"not a state of this version: {error}") from error
    return state


def _leaves(part: Any) -> list[tuple[str, Any]]:
    """Names and values of a dataclass's numbers and arrays; of nested ones with a dotted name."""
    leaves: list[tuple[str, Any]] = []
    for field in fields(part):
        value = getattr(part, field.name)
        if isinstance(value, Range | Moments | Sketch):
            leaves += [(f"{field.name}.{name}", leaf) for name, leaf in _leaves(value)]
        elif value is not None:
            leaves.append((field.name, value))
    return leaves


def _filled(blank: Any, prefix: str, arrays: Mapping[str, Floats]) -> Any:
    """A dataclass like `blank`, its leaves taken from the arrays under the prefix."""
    values: dict[str, Any] = {}
    for field in fields(blank):
        value, name = getattr(blank, field.name), f"{prefix}{field.name}"
        if isinstance(value, Range | Moments | Sketch):
            values[field.name] = _filled(value, f"{name}.", arrays)
        elif isinstance(value, float):
            values[field.name] = float(_shaped(name, arrays, ()))
        elif value is not None:
            values[field.name] = _shaped(name, arrays, value.shape)
        else:
            values[field.name] = None
    return type(blank)(**values)


def _shaped(name: str, arrays: Mapping[str, Floats], shape: tuple[int, ...]) -> Floats:
    array = np.asarray(arrays[name], np.float64)
    if array.shape != shape:
        raise IncompatibleState(f"{name} has shape {array.shape}, expected {shape}")
    return array


def _outline(shape: Any) -> Floats:
    """An array that takes no memory, used for its shape only."""
    return np.broadcast_to(np.float64(0), shape)
