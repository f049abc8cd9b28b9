"""Mathematical properties of the reference implementations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from . import algorithm1 as paper
from .algorithm1 import Algorithm1, Mask, Matrix
from .explicit import Explicit, Sums, assign, budget, first_V, greedy_order, relevance

SEEDS = range(30)
DIMS, CLUSTERS = [6, 9], 3


def one_view(seed: int) -> dict[str, Any]:
    """A random step's surroundings, with V fitted to U as it is after a few iterations."""
    rng = np.random.default_rng(seed)
    N, d, K = int(rng.integers(6, 20)), int(rng.integers(2, 12)), int(rng.integers(1, 5))
    present = rng.random(N) < 0.6
    present[0] = True
    X = np.where(present, rng.random((d, N)), 0.0)
    filled, weights = paper.impute(X, present, np.ones(d), 2.0, 3.0)
    U = rng.random((N, K))
    U /= np.linalg.norm(U, axis=0)
    fit = weights**2
    R, Q = U.T @ np.diag(fit) @ U, filled @ np.diag(fit) @ U
    return {
        "X": filled,
        "U": U,
        "V": first_V(R, Q) * rng.uniform(0.5, 2.0, (d, K)),
        "R": R,
        "Q": Q,
        "S": paper.neighbour_graph(X, present, 5),
        "fit": fit,
        "consensus": rng.random((N, K)) / np.sqrt(N),
        "a": 10 ** rng.uniform(-2, 2),
        "beta": 10 ** rng.uniform(-2, 2),
        "theta": 10 ** rng.uniform(-2, 2),
        "xi": 10 ** rng.uniform(-1, 3),
        "eta": 10 ** rng.uniform(-3, 1),
    }


def objective_of_V(c: dict[str, Any], V: Matrix) -> float:
    """The V subproblem with the smoothed ℓ2,1 norm that H descends on."""
    r = paper.row_norms(V)
    penalty = (r - paper.EPSILON * np.log(r + paper.EPSILON)).sum()
    return float(c["a"] * paper.chunk_loss(c["X"], c["U"], V, c["fit"]) + c["eta"] * penalty)


def objective_of_U(c: dict[str, Any], U: Matrix) -> float:
    terms = paper.indicator_terms(
        U, c["consensus"], c["S"], c["fit"], c["beta"], c["theta"], c["xi"]
    )
    return float(c["a"] * paper.chunk_loss(c["X"], U, c["V"], c["fit"]) + terms)


def step_U(c: dict[str, Any]) -> Matrix:
    return paper.update_U(
        c["U"], c["X"], c["V"], c["consensus"], c["S"], c["fit"], c["fit"],
        c["a"], c["beta"], c["theta"], c["xi"],
    )  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_the_steps_for_V_and_U_never_raise_their_objectives(seed: int) -> None:
    c = one_view(seed)
    V = paper.update_V(c["V"], c["Q"], c["R"], c["a"], c["eta"])
    assert objective_of_V(c, V) < objective_of_V(c, c["V"])
    assert objective_of_U(c, step_U(c)) < objective_of_U(c, c["U"])


def slopes(objective: Callable[[Matrix], float], F: Matrix) -> Matrix:
    """The numerical gradient of ``objective`` at ``F``."""
    gradient = np.zeros(F.shape)
    for index in np.ndindex(F.shape):
        shift = np.zeros(F.shape)
        shift[index] = 1e-6
        gradient[index] = (objective(F + shift) - objective(F - shift)) / 2e-6
    return gradient


@pytest.mark.parametrize("seed", SEEDS)
def test_every_entry_of_V_and_U_moves_against_its_gradient(seed: int) -> None:
    c = one_view(seed)
    V = paper.update_V(c["V"], c["Q"], c["R"], c["a"], c["eta"])
    for new, old, gradient in (
        (V, c["V"], slopes(lambda F: objective_of_V(c, F), c["V"])),
        (step_U(c), c["U"], slopes(lambda F: objective_of_U(c, F), c["U"])),
    ):
        moved = abs(new / old - 1) > 1e-4
        assert moved.any()
        np.testing.assert_array_equal(np.sign(new - old)[moved], -np.sign(gradient)[moved])


def test_the_square_root_overshoots_where_V_does_not_fit_at_all() -> None:
    """The U step descends near a fit, not from everywhere: ξ's term is of fourth order in U."""
    one, zero, weight = np.ones((1, 1)), np.zeros((1, 1)), np.ones(1)
    c: dict[str, Any] = {"X": 200 * one, "V": 0.1 * one, "U": 0.01 * one}
    c |= {"S": zero, "consensus": zero}
    c |= {"fit": weight, "a": 1.0, "beta": 0.0, "theta": 0.0, "xi": 10.0}
    assert objective_of_U(c, step_U(c)) > objective_of_U(c, c["U"])


def test_the_running_mean_counts_from_the_start_of_the_stream() -> None:
    X = np.array([[9.0, 0.0, 3.0, 0.0]])
    present = np.array([False, False, True, False])
    filled, weights = paper.impute(X, present, np.array([10.0]), 2.0, 3.0)
    np.testing.assert_allclose(filled, [[5.0, 5.0, 3.0, 13.0 / 3.0]])
    np.testing.assert_allclose(weights, [2 / 4, 2 / 5, 1.0, 3 / 7])
    filled, weights = paper.impute(X, present, np.zeros(1), 0.0, 0.0)
    np.testing.assert_allclose(weights, [0.0, 0.0, 1.0, 1 / 4])


def test_with_every_view_present_imputation_does_nothing() -> None:
    X = np.random.default_rng(0).random((4, 7))
    filled, weights = paper.impute(X, np.ones(7, dtype=bool), np.ones(4), 5.0, 8.0)
    np.testing.assert_array_equal(filled, X)
    np.testing.assert_array_equal(weights, 1.0)


def test_the_graph_joins_nearest_present_neighbours() -> None:
    X = np.array([[0.0, 1.0, 5.0, 3.0]])
    S = paper.neighbour_graph(X, np.array([True, True, True, False]), 1)
    width = (1.0 + 1.0 + 16.0) / 3
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = np.exp(-1 / width)
    expected[1, 2] = expected[2, 1] = np.exp(-16 / width)
    np.testing.assert_allclose(S, expected)


def stream(
    seed: int, chunks: int, N: int = 40, missing: float = 0.4
) -> list[tuple[list[Matrix], list[Mask], list[Matrix]]]:
    """Chunks of two views with starts for U; missing rows hold NaN, which nothing may read."""
    rng = np.random.default_rng(seed)
    result = []
    for _ in range(chunks):
        lost = rng.random(N) < missing
        which = rng.integers(0, 2, N)
        present = [~(lost & (which == v)) for v in range(2)]
        views = [
            np.where(mask[:, None], rng.random((N, d)), np.nan)
            for mask, d in zip(present, DIMS, strict=True)
        ]
        result.append((views, present, [rng.random((N, CLUSTERS)) for _ in DIMS]))
    return result


def start_V(seed: int) -> list[Matrix]:
    rng = np.random.default_rng(seed)
    return [rng.random((d, CLUSTERS)) for d in DIMS]


def algorithm1(**settings: Any) -> Algorithm1:
    values = {"lam": 2.0, "beta": 1.0, "theta": 0.1, "eta": 0.01} | settings
    return Algorithm1(DIMS, CLUSTERS, **values)


@pytest.mark.parametrize("classical", [False, True])
def test_statistics_of_algorithm1_are_sums_over_the_stream(classical: bool) -> None:
    data = stream(1, 3)
    model = algorithm1(classical=classical)
    results = [model.chunk(views, present, start_V(2), U) for views, present, U in data]
    present = np.concatenate([mask[0] for _, mask, _ in data])
    X = np.concatenate([views[0] for views, _, _ in data])
    U = np.concatenate([result.U[0] for result in results])
    weights = np.ones(len(X))
    for i in np.flatnonzero(~present):
        before = X[:i][present[:i]]
        X[i] = before.mean(axis=0) if len(before) else 0.0
        weights[i] = 0.0 if classical else (len(before) / (i + 1)) ** 2
    np.testing.assert_allclose(results[-1].R[0], (U.T * weights) @ U)
    np.testing.assert_allclose(results[-1].Q[0], (X.T * weights) @ U)
    np.testing.assert_allclose(results[-1].s[0], (weights[:, None] * X**2).sum())
    losses = [
        paper.chunk_loss(x.T, u, result.V[0], w)
        for x, u, result, w in zip(
            np.split(X, 3), np.split(U, 3), results, np.split(weights, 3), strict=True
        )
    ]
    np.testing.assert_allclose(model.state.views[0].loss, sum(losses))
    np.testing.assert_allclose(results[-1].alpha.sum(), 1.0)
    assert (results[-1].alpha[0] == 0.5) == classical


def test_algorithm1_skips_a_view_not_yet_seen_and_imputes_an_absent_one() -> None:
    data = stream(3, 3, missing=0.0)
    for t in (0, 2):
        data[t][1][1][:] = False
    model = algorithm1()
    results = [model.chunk(views, present, start_V(4), U) for views, present, U in data]
    np.testing.assert_array_equal(results[0].V[1], start_V(4)[1])
    np.testing.assert_array_equal(results[0].alpha, [1.0, 0.0])
    np.testing.assert_array_equal(results[0].R[1], 0.0)
    assert results[1].s[1] < results[2].s[1]
    assert not np.array_equal(results[1].V[1], results[2].V[1])
    assert all(np.isfinite(r.objective).all() and 10 <= r.iterations <= 50 for r in results)
    assert all(np.isfinite(array).all() for r in results for array in [*r.V, *r.U, *r.Q])


def signs(seed: int, N: int) -> Matrix:
    return np.random.default_rng(seed).choice([-1.0, 1.0], size=(N, 64))


def planted(seed: int, chunks: int, N: int = 60) -> list[tuple[list[Matrix], list[Mask], Matrix]]:
    """Each view: three features that each mark one class, noise, and last a copy of the first.

    Every class marks one feature of three, so that scaling rows to unit norm changes nothing.
    With each chunk comes the soft start P made from the classes.
    """
    rng = np.random.default_rng(seed)
    result = []
    for _ in range(chunks):
        labels = rng.integers(0, CLUSTERS, N)
        present = [rng.random(N) < 0.7 for _ in DIMS]
        present[0] |= ~present[1]
        views = []
        for d, mask in zip(DIMS, present, strict=True):
            x = rng.random((N, d))
            x[:, :CLUSTERS] += 3 * np.eye(CLUSTERS)[labels]
            x[:, -1] = x[:, 0]
            views.append(np.where(mask[:, None], x, np.nan))
        result.append((views, present, 0.9 * np.eye(CLUSTERS)[labels] + 0.1 / CLUSTERS))
    return result


def test_explicit_finds_the_planted_features_and_ranks_a_copy_below_them() -> None:
    model = Explicit(DIMS, CLUSTERS)
    for t, (views, present, P) in enumerate(planted(5, 5)):
        result = model.chunk(views, present, signs(t, len(P)), P)
        assert (result.shares.argmax(axis=1) == P.argmax(axis=1)).mean() > 0.95
    for rel, order in zip(result.relevance, result.order, strict=True):
        np.testing.assert_allclose(rel[-1], rel[0])
        assert rel[:CLUSTERS].min() > 3 * rel[CLUSTERS:-1].max()
        # Of two equal columns rounding decides which is first; the other must not follow.
        first = [0 if i == len(rel) - 1 else int(i) for i in order[:CLUSTERS]]
        assert sorted(first) == list(range(CLUSTERS))
    np.testing.assert_allclose(result.alpha.sum(), 1.0)


def test_explicit_does_not_depend_on_units_or_on_the_order_of_features() -> None:
    data = planted(6, 3)
    permutation = np.random.default_rng(0).permutation(DIMS[1])
    plain, changed = Explicit(DIMS, CLUSTERS), Explicit(DIMS, CLUSTERS)
    for t, (views, present, P) in enumerate(data):
        a = plain.chunk(views, present, signs(t, len(P)), P)
        other = [1000 * views[0] - 7, views[1][:, permutation]]
        b = changed.chunk(other, present, signs(t, len(P)), P)
    np.testing.assert_allclose(b.relevance[0], a.relevance[0], rtol=1e-6)
    np.testing.assert_allclose(b.relevance[1], a.relevance[1][permutation], rtol=1e-6)


def test_explicit_skips_an_absent_view_but_lets_it_decay() -> None:
    data = planted(7, 3)
    data[0][1][1][:] = False
    data[0][1][0][:] = True
    data[0][0][0][:] = np.nan_to_num(data[0][0][0])
    data[2][1][1][:] = False
    data[2][1][0][:] = True
    data[2][0][0][:] = np.nan_to_num(data[2][0][0])
    model = Explicit(DIMS, CLUSTERS, decay=0.9)
    results = [
        model.chunk(views, present, signs(t, len(P)), P)
        for t, (views, present, P) in enumerate(data)
    ]
    assert results[0].alpha.tolist() == [1.0, 0.0]
    assert results[2].alpha[1] == results[1].alpha[1] > 0
    assert [r.alpha.sum() for r in results] == pytest.approx([1.0, 1.0, 1.0])
    before, after = results[1].views[1], results[2].views[1]
    np.testing.assert_array_equal(after.V, before.V)
    np.testing.assert_allclose(after.n2, 0.81 * before.n2)
    np.testing.assert_allclose(after.g, np.sqrt(0.9) * before.g)
    np.testing.assert_allclose(after.Z, 0.9 * before.Z)
    np.testing.assert_allclose(results[2].relevance[1], results[1].relevance[1])
    assert model.j == pytest.approx(60 * (1 + 0.9 + 0.81))
    assert model.total == 180


def test_a_new_view_gets_an_equal_share_and_the_others_keep_their_proportions() -> None:
    seen, taking_part = np.array([True, True, False]), np.array([True, False, True])
    alpha = paper.admit(np.array([0.6, 0.4, 0.0]), seen, taking_part)
    np.testing.assert_allclose(alpha, [0.4, 0.8 / 3, 1 / 3])


def test_assign_averages_standardised_cosines_over_the_views_present() -> None:
    """Centred rows (±1, 0) and means (±1, 0): cosines ±1, RMS 1, so A = ±1 in the first view.

    In the second view the means lie across the rows, all cosines are 0 and it adds zeros.
    """
    along = Sums(np.array([[4.0, 0.0], [2.0, 2.0]]), np.array([2.0, 2.0]), np.array([4.0, 4.0]), 4)
    across = Sums(np.array([[2.0, 2.0], [4.0, 0.0]]), np.array([2.0, 2.0]), np.array([4.0, 4.0]), 4)
    x = np.array([[2.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    everywhere, first = np.array([True, True, True]), np.array([True, False, False])
    P = assign([x, x], [everywhere, first], [along, across])
    odds = P[:, 0] / P[:, 1]
    np.testing.assert_allclose(np.log(odds), [3 * 2 / 2, -3 * 2, -3 * 2])
    np.testing.assert_allclose(P.sum(axis=1), 1.0)


def test_the_iterations_start_from_the_reassigned_clusters() -> None:
    views, present, P = planted(9, 1)[0]
    result = Explicit(DIMS, CLUSTERS, max_iterations=0).chunk(views, present, signs(0, 60), P)
    assert (result.P.argmax(axis=1) == P.argmax(axis=1)).mean() > 0.9
    expected = (result.P + 1e-3) / np.sqrt(((result.P + 1e-3) ** 2).sum(axis=0))
    for array in [*result.U, result.consensus]:
        np.testing.assert_allclose(array, expected)


def test_views_of_different_energy_count_alike() -> None:
    """Without the sparsity term, the unit of a whole view changes neither α nor U."""
    results = []
    for unit in (1.0, 50.0):
        model = Explicit(DIMS, CLUSTERS, eta=0.0, transforms=["none", "none"])
        for t, (views, present, P) in enumerate(planted(10, 2)):
            scaled = [unit * views[0], views[1]]
            result = model.chunk(scaled, present, signs(t, len(P)), P)
        results.append(result)
    np.testing.assert_allclose(results[1].alpha, results[0].alpha)
    np.testing.assert_allclose(results[1].U[0], results[0].U[0], atol=1e-9)
    assert abs(results[0].alpha[0] - 0.5) > 1e-3


def test_the_relevance_of_noise_is_zero_on_average() -> None:
    """B − T·null, before it is cut at zero, has mean zero whatever the decay."""
    rng = np.random.default_rng(8)
    model = Explicit([40], CLUSTERS, decay=0.9, transforms=["none"])
    w = model.views[0]
    for _ in range(10):
        model._forget()
        N = 50
        P = rng.dirichlet(np.ones(CLUSTERS), N)
        model._add([rng.random((N, 40))], [np.ones(N, dtype=bool)], P, np.ones((N, 64)))
    mu = w.m / w.n
    T = w.q / w.n - mu**2
    B = sum(w.C[k] * (w.Z[:, k] / w.C[k] - mu) ** 2 for k in range(CLUSTERS)) / w.n
    null = (w.C2 / w.C).sum() / w.n - w.n2 / w.n**2
    excess = (B - T * null) / (T * null)
    assert abs(excess.mean()) < 4 * excess.std() / np.sqrt(40)
    expected = np.maximum(B - T * null, 0) / T * T / (T + 0.01 * mu**2)
    np.testing.assert_allclose(relevance(w), expected)


def test_a_feature_that_repeats_a_chosen_one_comes_last_within_the_depth() -> None:
    Y = np.vstack([np.eye(8)[0], np.eye(8)[0], np.eye(8)[1], np.eye(8)[2]])
    rel = np.array([0.9, 0.8, 0.3, 0.3])
    assert greedy_order(rel, Y, np.zeros(4), np.zeros(8), 4).tolist() == [0, 2, 3, 1]
    assert greedy_order(rel, Y, np.zeros(4), np.zeros(8), 1).tolist() == [0, 1, 2, 3]


def test_the_budget_follows_the_square_root_within_the_views() -> None:
    assert budget([100, 400], 0.3) == [50, 100]
    assert budget([4, 400], 0.5) == [4, 198]
    assert budget([1, 1, 10_000], 0.001) == [1, 1, 8]
    assert budget([9, 9], 0.5) == [5, 5]
    assert budget([16, 9, 9], 0.5) == [7, 6, 5]
    assert budget([4, 36], 0.25) == [2, 8]
