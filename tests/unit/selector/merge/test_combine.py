"""What can be merged, and what cannot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stream_fs.errors import IncompatibleState
from stream_fs.selector import State, View, initial_state, params, read_chunk, update
from stream_fs.selector.merge.alignment import group_clusters
from stream_fs.selector.merge.combine import combine, merge
from tests.support.random_streams import state_bytes

VIEWS = [View("a", 3, "none"), View("b", 2, "none")]


def model(origin: str = "", seed: int = 0, **inputs: Any) -> State:
    chosen = params(VIEWS, 2, seed=seed)
    return update(initial_state(chosen, origin), read_chunk(chosen.views, inputs))[0]


def rows(d: int, size: int = 20, seed: int = 0) -> Any:
    return np.random.default_rng(seed).random((size, d))


def test_nothing_cannot_be_merged() -> None:
    with pytest.raises(IncompatibleState, match="no models"):
        merge([])


def test_models_of_other_parameters_cannot_be_merged() -> None:
    one, other = model(a=rows(3)), model(a=rows(3), seed=1)
    with pytest.raises(IncompatibleState, match=f"{one.params.fingerprint}.*differ"):
        merge([one, other])


def test_the_first_model_gives_the_origin() -> None:
    assert merge([model("east", a=rows(3)), model("west", a=rows(3))]).origin == "east"


def test_a_view_that_one_model_has_not_seen_is_taken_from_the_other() -> None:
    one, other = model(a=rows(3)), model(a=rows(3, seed=1), b=rows(2))
    both = merge([one, other])
    moved = combine([other], group_clusters([one, other])[1:])
    for field in ("sum", "R", "Q", "V"):
        np.testing.assert_array_equal(
            getattr(both.views["b"], field), getattr(moved.views["b"], field)
        )
    np.testing.assert_array_equal(both.views["b"].sum, other.views["b"].sum)
    assert both.views["a"].n == 40
    np.testing.assert_allclose(both.alpha, (one.alpha + other.alpha) / 2)


def test_a_merged_model_goes_on() -> None:
    both = merge([model(a=rows(3)), model(a=rows(3, seed=1), b=rows(2))])
    after, report = update(both, read_chunk(both.params.views, {"a": rows(3, 5), "b": rows(2, 5)}))
    assert (after.total, after.chunk, report.chunk) == (45, 3, 3)
    assert np.isfinite(list(report.loss.values())).all()


def test_sums_go_to_the_groups_of_their_clusters() -> None:
    """Clusters 0 and 2 of the first model share a group; the second has none in group 2."""
    rng = np.random.default_rng(3)
    chosen = params([View("v", 4, "none")], 3)
    chunks = [read_chunk(chosen.views, {"v": rng.random((30, 4))}) for _ in range(2)]
    parts = [update(initial_state(chosen), chunk)[0] for chunk in chunks]
    groups = [np.array([1, 2, 1]), np.array([0, 1, 0])]
    found = combine(parts, groups).views["v"]
    assert found.moments is not None
    R, Q, C, C2, Z = np.zeros((3, 3)), np.zeros((4, 3)), np.zeros(3), np.zeros(3), np.zeros((4, 3))
    weighted, mass = np.zeros((4, 3)), np.zeros(3)
    for part, group in zip(parts, groups, strict=True):
        view = part.views["v"]
        assert view.moments is not None
        for k, g in enumerate(group):
            Q[:, g] += view.Q[:, k]
            C[g] += view.moments.C[k]
            C2[g] += view.moments.C2[k]
            Z[:, g] += view.moments.Z[:, k]
            weighted[:, g] += view.R[k, k] * view.V[:, k]
            mass[g] += view.R[k, k]
            for m, h in enumerate(group):
                R[g, h] += view.R[k, m]
    for name, expected in {"R": R, "Q": Q, "V": weighted / mass}.items():
        np.testing.assert_allclose(getattr(found, name), expected, err_msg=name)
    for name, expected in {"C": C, "C2": C2, "Z": Z}.items():
        np.testing.assert_allclose(getattr(found.moments, name), expected, err_msg=name)


def test_signs_of_different_origins_are_independent() -> None:
    """So that sketches of partitions add up like those of one stream."""
    one, other = model("east", a=rows(3)), model("west", a=rows(3))
    first, second = one.views["a"].sketch, other.views["a"].sketch
    assert first is not None
    assert second is not None
    assert not np.array_equal(first.g, second.g)
    same = replace(other, origin="east")
    assert state_bytes(same) != state_bytes(one)
