"""The update: a pure function `update(state, chunk) -> (state, report)`.

transform ─ weights, graph ─ start ─ iterations ─ add the sums, once
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stream_fs.errors import InvalidChunk
from stream_fs.selector.arrays import (
    TINY,
    Floats,
    Rows,
    Scaled,
    Working,
    column_square_sums,
    column_sums,
    cross,
    gram,
)
from stream_fs.selector.chunk import Chunk, ViewRows, missing_share
from stream_fs.selector.graph import Graph, neighbour_graph
from stream_fs.selector.imputation import (
    Imputation,
    energy,
    impute,
    imputed_rows,
    transposed_product,
)
from stream_fs.selector.initialization import (
    PresentRows,
    Profile,
    assign,
    clusters_before,
    clusters_with,
    first_factors,
    generator,
    indicator,
    signs,
    spectral_start,
)
from stream_fs.selector.iterations import Fit, iterate, relative_losses
from stream_fs.selector.kernels.dispatch import nearest_rows
from stream_fs.selector.kernels.interface import ViewProblem
from stream_fs.selector.parameters import Params, View
from stream_fs.selector.state import Moments, Range, Sketch, State, ViewState, decay
from stream_fs.selector.steps import UStepConstants, orthogonality, u_step_constants
from stream_fs.selector.transforms import fits_single, minmax, unit, widen


@dataclass(frozen=True, slots=True)
class Report:
    """The results of one update; mappings are by view.

    `objective` is per iteration; `loss` is relative to the view's energy, over all data so far, of
    the views that took part; `orthogonality` is ‖UᵀU − I‖; `missing` the share of rows without the
    view; `imputed` how many of those were imputed, and the weight n/j: of every view, rows 0 for
    one that did not take part.
    """

    chunk: int
    rows: int
    iterations: int
    converged: bool
    objective: tuple[float, ...]
    loss: Mapping[str, float]
    alpha: Mapping[str, float]
    orthogonality: Mapping[str, float]
    missing: Mapping[str, float]
    imputed: Mapping[str, Imputation]


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A view that takes part in this chunk: its carried state and its transformed rows."""

    view: View
    before: ViewState
    range: Range | None
    graph: Graph
    problem: ViewProblem
    evidence: PresentRows

    @property
    def new(self) -> bool:
        return not self.before.seen

    @property
    def started(self) -> bool:
        """Whether there is a V to start from; an all-zero V would stay zero."""
        return self.before.seen and bool(self.before.V.any())


def update(state: State, chunk: Chunk) -> tuple[State, Report]:
    """Update the model with a chunk. Pure: the same input gives the same bytes.

    Raises `InvalidChunk` if the first chunk has fewer rows than there are clusters.
    """
    params = state.params
    if state.chunk == 0 and chunk.size < params.clusters:
        raise InvalidChunk(
            f"the first chunk has {chunk.size} rows, fewer than the {params.clusters} clusters"
        )
    before = decay(state)
    parts = _prepare(before, chunk)
    j = before.j + chunk.size
    alpha = _entering_alpha(before, parts)
    active = [any(part.view.name == name for part in parts) for name in before.views]
    mass = alpha[active].sum()  # views that do not take part keep their weight
    begin = _start_at_random if params.start == "random" else _start_from_clusters
    U, V = begin(before, parts)
    problems = [part.problem for part in parts]
    weights = [float(weight) for weight in alpha[active] / mass]
    constants = _u_step_constants(params, parts)
    fit = iterate(problems, constants, U.astype(constants.fit_weights.dtype), V, weights, j, params)
    alpha[active] = mass * np.array(fit.alpha)
    after = _add_chunk(before, chunk, parts, fit, alpha, j)
    return after, _report(after, chunk, parts, fit)


def _u_step_constants(params: Params, parts: Sequence[_Part]) -> UStepConstants:
    return u_step_constants(
        [part.graph for part in parts],
        [part.problem.data.fit for part in parts],
        [part.problem.data.quality for part in parts],
        [params.per_view("beta", part.view.name) for part in parts],
        [params.per_view("theta", part.view.name) for part in parts],
        params.xi,
        _precision(parts),
    )


def _precision(parts: Sequence[_Part]) -> Any:
    """Precision of U and of arrays of its size.

    float64 if a view has transform `none`, whose rows may be of any magnitude; otherwise that of
    the rows.
    """
    single = all(
        part.view.transform != "none" and part.problem.data.rows.dtype == np.float32
        for part in parts
    )
    return np.float32 if single else np.float64


def _prepare(state: State, chunk: Chunk) -> list[_Part]:
    """The views that take part, scaled, with weights and graph."""
    taking: list[tuple[View, ViewState, ViewRows]] = []
    for view in state.params.views:
        before = state.views[view.name]
        given = chunk.views.get(view.name)
        if given is None:
            if not before.seen or state.params.absent_view == "skip":
                continue
            empty = np.zeros((0, view.dimension))
            given = ViewRows(empty, np.zeros(chunk.size, bool))
        taking.append((view, before, given))
    # The consensus couples the magnitudes of the U of all views.
    single = all(
        fits_single(given.rows, before.sum, before.Q, before.V)
        for view, before, given in taking
        if view.transform == "none"
    )
    return [
        _part(state, view, before, given if single else _double(given))
        for view, before, given in taking
    ]


def _double(given: ViewRows) -> ViewRows:
    return ViewRows(given.rows.astype(np.float64, copy=False), given.present)


def _part(state: State, view: View, before: ViewState, given: ViewRows) -> _Part:
    params = state.params
    span, rows = _scale(view, before, given.rows)
    data = impute(rows, given.present, before.sum, before.n, state.j, params.weights)
    total = column_sums(rows)
    centre = _centre(view, rows, total, before)
    products = gram(rows - centre if isinstance(rows, np.ndarray) and centre.any() else rows)
    problem = ViewProblem(
        data=data,
        energy=energy(data, products, centre),
        R0=before.R,
        Q0=before.Q.astype(rows.dtype, order="F"),
        energy0=before.energy,
        loss0=before.loss,
        eta=params.per_view("eta", view.name),
    )
    nearest = nearest_rows(products, params.neighbours)
    graph = neighbour_graph(products, nearest, data.at, data.size)
    evidence = PresentRows(rows, data.at, total, centre, products)
    return _Part(view, before, span, graph, problem, evidence)


def _centre(view: View, rows: Scaled, total: Floats, before: ViewState) -> Working:
    """A point near the rows, (d,), subtracted so that differences are not lost to rounding.

    The mean so far, or initially that of these rows. Zero after min-max, which leaves no common
    offset, and for CSR, which must stay sparse.
    """
    if view.transform == "minmax" or not isinstance(rows, np.ndarray):
        return np.zeros(rows.shape[1], rows.dtype)
    mean = before.sum / before.n if before.seen else total / max(len(rows), 1)
    return np.asarray(mean, rows.dtype)


def _scale(view: View, before: ViewState, rows: Rows) -> tuple[Range | None, Scaled]:
    """The transformed rows, and the running range, if the transform has one."""
    if view.transform == "minmax":
        if rows.shape[0] == 0:
            return before.range, rows
        span = widen(before.range if before.seen else None, rows)
        return span, minmax(rows, span)
    if view.transform == "unit":
        return None, unit(rows)
    return None, rows


def _start_at_random(state: State, parts: Sequence[_Part]) -> tuple[Floats, list[Floats]]:
    """The paper's start: U at random in every chunk, V at random once."""
    params, origin = state.params, state.origin
    size = parts[0].problem.data.size
    U = np.array([random_indicator(params, origin, part.view, state.chunk, size) for part in parts])
    V = [
        part.before.V if part.started else random_factors(params, origin, part.view)
        for part in parts
    ]
    return U, V


def random_indicator(params: Params, origin: str, view: View, chunk: int, rows: int) -> Floats:
    """U of one view at the start of a chunk, (rows × K), where the start is random."""
    source = generator(params.seed, origin, "U", view.name, chunk)
    return source.random((rows, params.clusters))


def random_factors(params: Params, origin: str, view: View) -> Floats:
    """V of a view at its first appearance, (d × K), where the start is random."""
    source = generator(params.seed, origin, "V", view.name)
    return source.random((view.dimension, params.clusters))


def _start_from_clusters(state: State, parts: Sequence[_Part]) -> tuple[Floats, list[Floats]]:
    """U from the clusters so far; in the first chunk from a clustering of its graphs."""
    params = state.params
    size = parts[0].problem.data.size
    evidence = [part.evidence for part in parts]
    before = [clusters_before(part.evidence, _profile(part.before)) for part in parts]
    if state.chunk == 0:
        source = generator(params.seed, state.origin, "clusters")
        shares = spectral_start([part.graph for part in parts], params.clusters, source)
    else:
        shares = assign(size, evidence, before, params.clusters)
    for _ in range(params.reassignments):
        clusters = [clusters_with(c, e, shares) for c, e in zip(before, evidence, strict=True)]
        shares = assign(size, evidence, clusters, params.clusters)
    U = indicator(shares)
    return np.array([U] * len(parts)), [_carried_factors(part, U) for part in parts]


def _profile(view: ViewState) -> Profile:
    assert view.moments is not None, "the start from clusters keeps moments"
    return Profile(view.moments.C, view.moments.Z, view.sum, view.n)


def _carried_factors(part: _Part, U: Floats) -> Floats:
    if part.started:
        return part.before.V
    data = part.problem.data
    Q = transposed_product(data, U).astype(np.float64)
    return first_factors(Q, U.T @ (data.fit[:, None] * U))


def _entering_alpha(state: State, parts: Sequence[_Part]) -> Floats:
    """View weights at the start of the chunk: a new view gets an even share."""
    new = [part.view.name for part in parts if part.new]
    if not new:
        return state.alpha.copy()
    known = len(new) + sum(view.seen for view in state.views.values())
    alpha = state.alpha * (1 - len(new) / known)
    alpha[[name in new for name in state.views]] = 1 / known
    # A view whose count has decayed to zero is new again, but still has its old weight.
    return np.asarray(alpha / alpha.sum(), np.float64)


def _add_chunk(
    state: State, chunk: Chunk, parts: Sequence[_Part], fit: Fit, alpha: Floats, j: float
) -> State:
    """The state with this chunk's sums added, once, after the iterations."""
    params = state.params
    shares = fit.factors.consensus.astype(np.float64)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), TINY)
    source = generator(params.seed, state.origin, "signs", state.chunk)
    sketch_signs = signs(source, chunk.size, params.sketch)
    views = dict(state.views)
    for number, (part, V) in enumerate(zip(parts, fit.factors.V, strict=True)):
        added = transposed_product(part.problem.data, fit.factors.U[number])
        views[part.view.name] = replace(
            _add_to_view(part, shares, sketch_signs),
            R=part.before.R + fit.factors.UtWU[number],
            Q=np.add(part.before.Q, added, order="C"),  # Eq. 11
            V=V.astype(np.float64, order="C"),
            loss=part.before.loss + max(fit.losses.chunk[number], 0.0),
        )
    return State(params, state.origin, views, alpha, j, state.total + chunk.size, state.chunk + 1)


def _add_to_view(part: _Part, shares: Floats, sketch_signs: Working) -> ViewState:
    """The sums that do not depend on the factorisation."""
    before, evidence = part.before, part.evidence
    moments, sketch = before.moments, before.sketch
    return replace(
        before,
        n=before.n + len(evidence.at),
        sum=before.sum + evidence.sum,
        energy=part.problem.total_energy,
        range=part.range,
        moments=None if moments is None else _add_moments(moments, evidence, shares),
        sketch=None if sketch is None else _add_sketch(sketch, evidence, sketch_signs),
    )


def _add_moments(before: Moments, evidence: PresentRows, shares: Floats) -> Moments:
    present = shares[evidence.at]
    return Moments(
        C=before.C + present.sum(axis=0),
        C2=before.C2 + (present**2).sum(axis=0),
        Z=np.add(before.Z, cross(evidence.rows, present), order="C"),
        q=before.q + column_square_sums(evidence.rows),
        n2=before.n2 + len(evidence.at),
    )


def _add_sketch(before: Sketch, evidence: PresentRows, sketch_signs: Working) -> Sketch:
    drawn = sketch_signs[evidence.at]
    Y = np.add(before.Y, cross(evidence.rows, drawn), order="C")
    return Sketch(Y, before.g + drawn.sum(axis=0))


def _report(after: State, chunk: Chunk, parts: Sequence[_Part], fit: Fit) -> Report:
    names = [part.view.name for part in parts]
    losses = relative_losses([part.problem for part in parts], fit.losses)
    return Report(
        chunk=after.chunk,
        rows=chunk.size,
        iterations=len(fit.objective),
        converged=fit.converged,
        objective=fit.objective,
        loss=dict(zip(names, losses, strict=True)),
        alpha=dict(zip(after.views, after.alpha.tolist(), strict=True)),
        orthogonality=dict(zip(names, orthogonality(fit.factors.UtU), strict=True)),
        missing={view.name: missing_share(chunk, view.name) for view in after.params.views},
        imputed=_imputations(after, parts),
    )


def _imputations(after: State, parts: Sequence[_Part]) -> dict[str, Imputation]:
    rows = {part.view.name: imputed_rows(part.problem.data) for part in parts}
    counts = after.params.weights != "binary"
    return {
        name: Imputation(rows.get(name, 0), view.n / after.j if counts else 0.0)
        for name, view in after.views.items()
    }
