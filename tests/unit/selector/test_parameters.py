"""Every parameter has a range, a meaning, and an effect."""

from __future__ import annotations

import copy
import json
import math
import pickle
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from stream_fs.errors import InvalidParameter, StreamFsError
from stream_fs.selector import MultiViewSelector, Params, View, params
from tests.support.planted_streams import Planted, planted_chunks
from tests.support.random_streams import run

VIEWS = [View("a", 3), View("b", 2)]

NOT_WHOLE: list[Any] = [-1, 1.5, "2", None, True, math.nan]
NOT_POSITIVE: list[Any] = [0.0, -1.0, math.inf, math.nan, "1", None, True, {"a": 1.0}]
NEGATIVE: list[Any] = [-1e-9, 1e40, math.inf, math.nan, "1", None, True]

OUT_OF_RANGE: dict[str, list[Any]] = {
    "clusters": [0, *NOT_WHOLE],
    "preset": ["best", "", None],
    "seed": NOT_WHOLE,
    "lam": [1.0, 0.5, *NOT_POSITIVE],
    "beta": [*NOT_POSITIVE, 1e40, {"a": 1.0, "b": 0.0}, {"a": 1.0, "b": 1.0, "c": 1.0}],
    "theta": [*NEGATIVE, {"a": 1.0}, {"a": 1.0, "b": -1.0}],
    "eta": [*NEGATIVE, {}, {"a": 1.0, "b": math.nan}],
    "xi": [*NEGATIVE, {"a": 1.0, "b": 1.0}],
    "neighbours": [0, *NOT_WHOLE],
    "min_iterations": [0, 51, *NOT_WHOLE],
    "max_iterations": [0, 9, *NOT_WHOLE],
    "tolerance": [bad for bad in NEGATIVE if bad != 1e40],
    "inner_updates": [0, *NOT_WHOLE],
    "start": ["warm", None],
    "reassignments": NOT_WHOLE,
    "first_rows": [0, *NOT_WHOLE],
    "energy_scaling": ["yes", 1, None],
    "loss": ["squared", None],
    "absent_view": ["drop", None],
    "weights": ["none", None],
    "view_weights": [[0.5, 0.5], "equal"],
    "score": ["variance", None],
    "sketch": [1, 2, *NOT_WHOLE],
    "budget": ["equal", None],
    "decay": [0.0, 1.0001, -0.5, math.nan, "1", None],
}


def test_every_parameter_is_covered_here() -> None:
    assert OUT_OF_RANGE.keys() | {"views"} == {field.name for field in fields(Params)}


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, bad in OUT_OF_RANGE.items() for value in bad],
    ids=repr,
)
def test_a_value_out_of_range_is_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidParameter, match=name) as caught:
        params(VIEWS, **{"clusters": 2, name: value})
    assert isinstance(caught.value, StreamFsError)
    assert isinstance(caught.value, ValueError)
    if name not in ("preset", "clusters"):
        with pytest.raises(InvalidParameter, match=name):
            replace(params(VIEWS, 2), **{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lam", 1.0000001),
        ("theta", 0),
        ("eta", 0.0),
        ("xi", 0.0),
        ("tolerance", 0.0),
        ("decay", 1),
        ("decay", 1e-9),
        ("sketch", 0),
        ("sketch", 3),
        ("reassignments", 0),
        ("seed", 2**100),
        ("clusters", np.int64(4)),
        ("beta", np.float32(0.5)),
        ("beta", {"a": 1, "b": 2.5}),
        ("neighbours", 1),
    ],
)
def test_the_ends_of_the_ranges_are_allowed(name: str, value: Any) -> None:
    chosen = params(VIEWS, **{"clusters": 2, name: value})
    assert getattr(chosen, name) == value


def test_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(InvalidParameter, match=r"'gamma'.*known are.*'lam'"):
        params(VIEWS, 2, gamma=1.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("", 3), "non-empty string"),
        ((7, 3), "non-empty string"),
        (("a", 0), "whole number of at least 1"),
        (("a", 2.0), "whole number of at least 1"),
        (("a", True), "whole number of at least 1"),
        (("a", 3, "log"), "transform must be one of"),
        (("a", 3, None, ("x", "y")), "2 feature names for 3 features"),
    ],
)
def test_a_view_that_no_data_could_fit_is_refused(arguments: Any, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        View(*arguments)


def test_views_are_needed_and_named_once() -> None:
    with pytest.raises(InvalidParameter, match="at least one view"):
        params([], 2)
    with pytest.raises(InvalidParameter, match="'a' is declared twice"):
        params([View("a", 3), View("a", 2)], 2)


def test_presets_are_those_of_the_specification() -> None:
    default, paper, classical = (
        params(VIEWS, 4, preset=preset) for preset in ("default", "paper", "classical")
    )
    assert (default.lam, default.beta, default.theta, default.eta) == (3.0, 1.0, 0.1, 0.01)
    assert (default.xi, default.neighbours, default.sketch) == (10.0, 5, 64)
    assert (default.first_chunk_rows, default.reassignments, default.inner_updates) == (80, 3, 1)
    assert (default.start, default.loss, default.absent_view) == ("consensus", "exact", "skip")
    assert (default.score, default.budget, default.decay) == ("relevance", "sqrt", 1.0)
    assert (default.min_iterations, default.max_iterations, default.tolerance) == (10, 50, 1e-4)
    assert [view.transform for view in default.views] == ["minmax", "minmax"]
    assert (paper.xi, paper.start, paper.loss, paper.absent_view) == (
        1e3,
        "random",
        "accumulated",
        "impute",
    )
    assert (paper.score, paper.sketch, paper.budget) == ("row_norm", 0, "proportional")
    assert (paper.inner_updates, paper.energy_scaling) == (1, False)
    assert (paper.weights, paper.view_weights) == ("quality", "learned")
    assert [view.transform for view in paper.views] == ["none", "none"]
    assert (classical.weights, classical.view_weights) == ("binary", "uniform")
    switched = {"preset": "paper", "weights": "quality", "view_weights": "learned"}
    assert replace(classical, **switched) == paper  # type: ignore[arg-type]  # the names are those of fields


@pytest.mark.parametrize("preset", ["default", "paper", "classical"])
def test_parameters_survive_json(preset: Any) -> None:
    views = [View("a", 3, "unit", ("x", "y", "ж")), View("b", 2)]
    chosen = params(views, 2, preset=preset, beta={"a": 1.0, "b": 0.5}, seed=7)
    again = Params.from_dict(json.loads(json.dumps(chosen.to_dict())))
    assert again == chosen
    assert again.fingerprint == chosen.fingerprint
    assert replace(chosen, seed=8).fingerprint != chosen.fingerprint
    plain = chosen.to_dict()
    with pytest.raises(InvalidParameter, match="lam"):
        Params.from_dict({key: value for key, value in plain.items() if key != "lam"})
    with pytest.raises(InvalidParameter, match="gamma"):
        Params.from_dict({**plain, "gamma": 1.0})


WORLD = Planted(seed=21, clusters=3, noise=6)


def scores_with(**setting: Any) -> tuple[Any, Any]:
    fixed = {"min_iterations": 10, "max_iterations": 10, "score": "row_norm"}
    chosen = params(WORLD.views, WORLD.clusters, **{**fixed, **setting})
    state, reports = run(chosen, planted_chunks(WORLD, chosen, [60, 30]))
    return {name: view.V for name, view in state.views.items()}, reports[-1]


@pytest.mark.parametrize("name", ["beta", "theta", "eta"])
def test_weights_per_view_are_effective(name: str) -> None:
    value = 0.3
    plain, _ = scores_with(**{name: value})
    same, _ = scores_with(**{name: {"view 0": value, "view 1": value}})
    other, _ = scores_with(**{name: {"view 0": value, "view 1": 30 * value}})
    for view in plain:
        np.testing.assert_array_equal(plain[view], same[view])
    assert not np.allclose(plain["view 1"], other["view 1"], rtol=1e-4)


def test_a_large_eta_of_one_view_empties_its_factors_alone() -> None:
    plain, _ = scores_with(eta=0.01, view_weights="uniform")
    sparse, _ = scores_with(eta={"view 0": 0.01, "view 1": 1e4}, view_weights="uniform")
    assert np.linalg.norm(sparse["view 1"]) < 1e-2 * np.linalg.norm(plain["view 1"])
    ratio = np.linalg.norm(sparse["view 0"]) / np.linalg.norm(plain["view 0"])
    assert 0.8 < ratio < 1.2


@pytest.mark.parametrize(
    "setting",
    [
        {"lam": 1.5},
        {"xi": 1e3},
        {"neighbours": 2},
        {"min_iterations": 12, "max_iterations": 12},
        {"inner_updates": 2},
        {"start": "random"},
        {"reassignments": 0},
        {"energy_scaling": False},
        {"loss": "accumulated"},
        {"weights": "binary"},
        {"view_weights": "uniform"},
        {"decay": 0.5},
    ],
    ids=str,
)
def test_every_switch_of_the_method_has_an_effect(setting: dict[str, Any]) -> None:
    plain, _ = scores_with()
    other, _ = scores_with(**setting)
    assert any(not np.allclose(plain[view], other[view], rtol=1e-6) for view in plain)


def test_tolerance_ends_the_iterations() -> None:
    assert scores_with(min_iterations=1, tolerance=1e9)[1].iterations == 2
    assert scores_with(min_iterations=1, tolerance=0.0)[1].iterations == 10


def test_the_selector_takes_the_parameters_by_name() -> None:
    model = MultiViewSelector(VIEWS, 3, preset="paper", seed=5, lam=4.0)
    assert (model.params.preset, model.params.seed, model.params.lam) == ("paper", 5, 4.0)
    with pytest.raises(InvalidParameter, match="unknown parameter 'lamda'"):
        MultiViewSelector(VIEWS, 3, lamda=4.0)


def test_a_fingerprint_is_that_of_the_present_values() -> None:
    first = params([View("a", 3)], 2)
    again = first.fingerprint
    assert first.fingerprint == again
    assert replace(first, seed=1).fingerprint != again
    assert pickle.loads(pickle.dumps(first)).fingerprint == again
    assert copy.deepcopy(first) == first


@pytest.mark.parametrize("name", ["lam", "beta", "theta", "eta", "xi", "tolerance", "decay"])
def test_a_number_is_the_same_in_whatever_type_it_comes(name: str) -> None:
    values: dict[str, Any] = {name: 1.0 if name == "decay" else 2.0}
    plain = params(VIEWS, 2, **values)
    for kind in (int, np.float32, np.float64, np.int64):
        values = {name: kind(values[name])}
        same = params(VIEWS, 2, **values)
        assert same == plain
        assert same.fingerprint == plain.fingerprint
        assert Params.from_dict(json.loads(json.dumps(same.to_dict()))) == plain


def test_weights_per_view_are_our_own() -> None:
    given = {"b": np.float32(2), "a": 1}
    chosen = params(VIEWS, 2, beta=MappingProxyType(given), theta=given)
    before = chosen.fingerprint
    given["a"] = -5
    assert chosen.per_view("theta", "a") == 1.0
    assert replace(chosen, seed=0).fingerprint == before
    assert chosen.to_dict()["beta"] == {"a": 1.0, "b": 2.0}
