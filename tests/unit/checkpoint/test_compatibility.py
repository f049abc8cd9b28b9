from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, get_args

import pytest

from stream_fs.checkpoint.compatibility import ACCEPTED, incompatible_changes
from stream_fs.selector.parameters import Params, Preset, View, params
from tests.support.models import VIEWS, model_params

OLD = model_params()
DENSE, COUNTS, LATER = VIEWS

REFUSED: dict[str, tuple[Params, list[str]]] = {
    "view gone": (params([DENSE, COUNTS], 3), ["view 'later': declared → not declared"]),
    "view new": (
        params([*VIEWS, View("more", 2)], 3),
        ["view 'more': not declared → declared"],
    ),
    "view renamed": (
        params([DENSE, COUNTS, View("sooner", 5)], 3),
        ["view 'later': declared → not declared", "view 'sooner': not declared → declared"],
    ),
    "order": (
        params([COUNTS, DENSE, LATER], 3),
        ["order of the views: ['dense', 'counts', 'later'] → ['counts', 'dense', 'later']"],
    ),
    "dimension": (
        params([DENSE, COUNTS, View("later", 6)], 3),
        ["dimension of view 'later': 5 → 6"],
    ),
    "transform": (
        params([DENSE, View("counts", 30, "unit"), LATER], 3),
        ["transform of view 'counts': 'minmax' → 'unit'"],
    ),
    "several": (
        params([View("dense", 13, "none"), COUNTS, LATER], 5),
        [
            "dimension of view 'dense': 12 → 13",
            "transform of view 'dense': 'minmax' → 'none'",
            "clusters: 3 → 5",
        ],
    ),
    "preset": (replace(OLD, preset="paper"), ["preset: 'default' → 'paper'"]),
    "beta of one view": (
        model_params(beta={"dense": 1.0, "counts": 4.0, "later": 1.0}),
        ["beta of view 'counts': 1.0 → 4.0"],
    ),
}

OTHER: dict[str, Any] = {
    "clusters": 4,
    "lam": 2.0,
    "beta": 2.0,
    "theta": 0.2,
    "eta": 0.02,
    "xi": 1.0,
    "neighbours": 6,
    "start": "random",
    "energy_scaling": False,
    "loss": "accumulated",
    "absent_view": "impute",
    "weights": "binary",
    "view_weights": "uniform",
    "sketch": 32,
    "decay": 0.5,
    "seed": 1,
    "min_iterations": 11,
    "max_iterations": 51,
    "tolerance": 1e-3,
    "inner_updates": 3,
    "reassignments": 2,
    "first_rows": 10,
    "budget": "proportional",
    "score": "row_norm",
}
"""Another value for every parameter."""


def test_equal_parameters_are_compatible() -> None:
    for preset in get_args(Preset):
        assert incompatible_changes(model_params(preset).to_dict(), model_params(preset)) == []


@pytest.mark.parametrize(("new", "lines"), REFUSED.values(), ids=REFUSED)
def test_each_change_is_listed(new: Params, lines: list[str]) -> None:
    assert incompatible_changes(OLD.to_dict(), new) == lines


def test_every_parameter_is_accepted_or_rejected() -> None:
    assert {field.name for field in fields(Params)} == {"views", "preset", *OTHER}


@pytest.mark.parametrize("name", OTHER)
def test_a_parameter_is_rejected_unless_it_is_listed_as_accepted(name: str) -> None:
    lines = incompatible_changes(OLD.to_dict(), replace(OLD, **{name: OTHER[name]}))
    if name in ACCEPTED or name == "score":
        assert lines == []
    else:
        assert lines == [f"{name}: {getattr(OLD, name)!r} → {OTHER[name]!r}"]


def test_the_score_is_rejected_where_it_changes_the_set_of_sums() -> None:
    paper = model_params("paper")
    relevance = replace(paper, score="relevance")
    assert relevance.keeps_moments
    assert not paper.keeps_moments
    line = "score: 'row_norm' → 'relevance'"
    assert incompatible_changes(paper.to_dict(), relevance) == [line]
    assert len(incompatible_changes(relevance.to_dict(), paper)) == 1


def test_names_of_features_are_labels() -> None:
    named = replace(OLD, views=(DENSE, COUNTS, View("later", 5, names=tuple("abcde"))))
    renamed = replace(OLD, views=(DENSE, COUNTS, View("later", 5, names=tuple("vwxyz"))))
    assert incompatible_changes(OLD.to_dict(), named) == []
    assert incompatible_changes(named.to_dict(), renamed) == []
    assert incompatible_changes(named.to_dict(), OLD) == []


def test_one_number_for_all_views_means_the_same_as_one_for_each() -> None:
    each = replace(OLD, beta=dict.fromkeys(["later", "dense", "counts"], 1.0))
    assert incompatible_changes(OLD.to_dict(), each) == []
    assert incompatible_changes(each.to_dict(), OLD) == []


def test_a_dropped_view_has_one_line() -> None:
    old = model_params(beta={"dense": 1.0, "counts": 2.0, "later": 3.0})
    new = params([DENSE, COUNTS], 3, beta={"dense": 1.0, "counts": 2.0})
    assert incompatible_changes(old.to_dict(), new) == ["view 'later': declared → not declared"]


def test_parameters_of_another_release_are_named() -> None:
    old = OLD.to_dict() | {"momentum": 0.9}
    del old["decay"], old["theta"]
    assert incompatible_changes(old, OLD) == [
        "theta: not there → 0.1",
        "decay: not there → 1.0",
        "momentum: 0.9 → not there",
    ]


def test_a_line_is_short() -> None:
    old = OLD.to_dict() | {"decay": list(range(10_000))}
    (line,) = incompatible_changes(old, OLD)
    assert len(line) < 300
