from collections.abc import Sequence

import numpy as np
import pytest

from stream_fs.evaluate.datasets import DataSet, IncompleteViews
from stream_fs.evaluate.experiments import EXPERIMENTS, drift, grid, stability, traits
from stream_fs.evaluate.methods.registry import ALL, BUDGETS, METHODS
from stream_fs.evaluate.plan import (
    LARGE_REPETITIONS,
    Entry,
    OnData,
    OnMade,
    Options,
    Row,
    Settings,
)
from stream_fs.evaluate.protocol import LOOKS, Problem, make_problem
from tests.unit.evaluate.planted import planted_views

ENTRY = Entry("planted", "development", 400, (24, 24, 24), 4, "abc")
LARGE = Entry("large", "development", 9298, (24, 24, 24), 4, "abc")
TINY = Options(repetitions=1, shares=(0.5,), quick=True)


@pytest.fixture(scope="module")
def dataset() -> DataSet:
    data, labels = planted_views(size=30, missing=0)
    return DataSet("planted", data.views, labels)


def measured(name: str, settings: Settings, dataset: DataSet | None = None) -> list[Row]:
    experiment = EXPERIMENTS[name]
    if isinstance(experiment, OnMade):
        return experiment.measure(settings)
    assert dataset is not None
    problem = make_problem(dataset, int(settings["repetition"]), float(settings["missing"]))
    return experiment.measure(*problem, settings)


def plan(name: str, options: Options, entry: Entry = ENTRY) -> Sequence[Settings]:
    experiment = EXPERIMENTS[name]
    if isinstance(experiment, OnMade):
        return experiment.settings(options)
    return experiment.plan(options, entry)


def planned(name: str, **wanted: object) -> Settings:
    """The first planned settings with these values."""
    for settings in plan(name, TINY):
        if all(settings[key] == value for key, value in wanted.items()):
            return settings
    raise AssertionError(f"{name} plans nothing with {wanted}")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_settings_of_a_plan_are_all_different(name: str) -> None:
    settings = plan(name, Options())
    assert settings
    assert len({str(sorted(of.items())) for of in settings}) == len(settings)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_settings_name_the_parameters_behind_them(name: str) -> None:
    # A default that changes has to be measured again.
    settings = plan(name, Options())
    assert all(of["identity"] for of in settings)
    identities = {METHODS["default"].identity, METHODS["paper"].identity}
    assert name in ("grid", "ablation", "sensitivity", "speed") or identities & {
        of["identity"] for of in settings
    }


@pytest.mark.parametrize("name", [n for n, e in EXPERIMENTS.items() if isinstance(e, OnData)])
def test_a_large_set_is_repeated_less_often(name: str) -> None:
    repetitions = {of["repetition"] for of in plan(name, Options(), LARGE)}
    assert repetitions <= set(range(LARGE_REPETITIONS))


def test_the_main_comparison_has_every_budget_share_and_judge(dataset: DataSet) -> None:
    rows = measured("ranking", planned("ranking", method="variance"), dataset)
    assert {(row["budget"], row["share"], row["judge"]) for row in rows} == {
        (budget, 0.5, look) for budget in BUDGETS for look in LOOKS
    }
    assert len(rows) == 8
    assert all(float(row["nmi"]) > 0.8 for row in rows)
    everything = measured("ranking", planned("ranking", method=ALL), dataset)
    assert {row["share"] for row in everything} == {1.0}
    assert {of["method"] for of in plan("ranking", TINY)} == set(METHODS)


def test_the_grid_leaves_the_middle_one_parameter_at_a_time() -> None:
    settings = grid.settings_of(grid.MIDDLE, grid.GRID)
    assert settings[0][0] == "middle"
    assert len(settings) == 1 + 4 + 4 + 4 + 9
    assert all(value != grid.MIDDLE[name] for name, value in settings[1:])


def test_the_grid_is_judged_as_in_the_paper(dataset: DataSet) -> None:
    rows = measured("grid", planned("grid", parameter="lam", value=2.0), dataset)
    assert [(row["budget"], row["judge"]) for row in rows] == [("proportional", "gimc scaled")]


@pytest.mark.parametrize(
    ("name", "wanted", "count"),
    [
        ("ablation", {"variant": "no redundancy"}, 4),
        ("sensitivity", {"parameter": "beta"}, 2),
        ("missing", {"missing": 0.3, "method": "default"}, 2),
    ],
)
def test_the_other_comparisons_have_a_row_per_share_and_judge(
    dataset: DataSet, name: str, wanted: dict[str, object], count: int
) -> None:
    rows = measured(name, planned(name, **wanted), dataset)
    assert len(rows) == count
    assert max(float(row["nmi"]) for row in rows) > 0.5


def test_every_setting_of_the_judge_is_tried(dataset: DataSet) -> None:
    rows = measured("judging", planned("judging", method="variance"), dataset)
    assert [row["setting"] for row in rows].count("neighbours") == 3
    assert len(rows) == 9
    assert len({row["nmi"] for row in rows}) > 1


def test_the_objective_is_told_for_every_iteration(dataset: DataSet) -> None:
    rows = measured("convergence", planned("convergence", preset="default"), dataset)
    assert [row["iteration"] for row in rows] == [*range(1, 51)] * 2
    last = [float(row["objective"]) for row in rows if row["chunk"] == "last"]
    assert last[-1] <= last[0]


def test_times_are_told_for_every_method_and_increment(dataset: DataSet) -> None:
    plans = [settings for settings in plan("speed", TINY) if settings["repetition"] == 0]
    rows = [row for settings in plans for row in measured("speed", settings, dataset)]
    methods = [settings["method"] for settings in plans]
    assert set(methods) == {
        "default",
        "default, again",
        "paper",
        "paper, again",
        "OMVFS",
        "Laplacian score",
        "MiniBatchNMF",
        "variance",
    }
    assert len(rows) == 5 * len(methods)
    assert all(float(row["seconds"]) > 0 for row in rows)


def test_counts_have_no_other_unit() -> None:
    generator = np.random.default_rng(0)
    counts, lengths = generator.poisson(0.1, (50, 20)).astype(float), generator.random((50, 20))
    both = Problem(IncompleteViews((counts, lengths), np.ones((50, 2), bool)), 2, 0)
    moved = stability.other_units(both)
    assert moved is not None
    assert moved.data.views[0] is counts
    assert not np.allclose(moved.data.views[1], lengths)
    only = Problem(IncompleteViews((counts,), np.ones((50, 1), bool)), 2, 0)
    assert stability.other_units(only) is None


def test_default_does_not_know_units_and_variance_does(dataset: DataSet) -> None:
    ours, variance, random = (
        measured("stability", planned("stability", method=name), dataset)[0]
        for name in ("default", "variance", "random")
    )
    assert ours["units"] == 1
    assert float(variance["units"]) < 0.7
    # Five of twelve that are equally good are chosen, by chance five of twenty-four.
    assert float(ours["halves"]) > float(random["halves"]) + 0.1
    assert 0.5 < float(ours["chunks"]) <= 1


def test_overlap_counts_what_both_have() -> None:
    one = [np.array([True, True, False]), np.array([True, False])]
    other = [np.array([True, False, True]), np.array([False, True])]
    assert stability.overlap(one, other) == pytest.approx(1 / 3)
    assert stability.overlap(one, one) == 1


# --- planted features -----------------------------------------------------------------------------


def test_default_keeps_useless_features_out_and_variance_does_not() -> None:
    ours, variance = (
        measured("traits", planned("traits", method=name))[0] for name in ("default", "variance")
    )
    for kind in ("noise", "loud", "constant", "heavy-tailed"):
        assert float(ours[f"useless: {kind}"]) < 0.1
    assert float(ours["repeats"]) < 0.1
    assert float(ours["auc"]) > 0.95
    assert float(ours["rank correlation in other units"]) > 0.99
    assert float(variance["useless: loud"]) > 0.9
    assert float(variance["repeats"]) > 0.1


def test_shares_areas_and_repeats_by_hand() -> None:
    kinds = ["informative", "noise", "informative", "loud"]
    orders = [np.array([0, 3, 2, 1]), np.array([2, 0, 1, 3])]
    assert traits.chosen_share(orders, kinds, "loud") == pytest.approx(0.5)  # first view only
    assert traits.chosen_share(orders, kinds, "noise") == 0
    # first view: 0 before both others, 2 before noise alone: 3 of 4; second view: all four
    assert traits.area(orders, kinds) == pytest.approx((3 / 4 + 1) / 2)
    assert traits.correlation(orders, orders) == pytest.approx(1)
    assert traits.correlation([orders[0]], [orders[0][::-1]]) == pytest.approx(-1)


def test_a_copy_is_a_repeat_and_a_second_original_is_not() -> None:
    planted = traits.with_copies(0)
    originals = np.array(planted.originals)
    informative = np.array([kind == "informative" for kind in planted.kinds])
    firsts = [int(np.flatnonzero((originals == o) & informative)[0]) for o in range(8)]
    copies = [int(np.flatnonzero((originals == o) & informative)[1]) for o in range(4)]
    rest = [i for i in range(len(originals)) if i not in firsts]
    assert traits.repeats([np.array(firsts + rest)] * 3, planted) == 0
    with_copies = firsts[:4] + copies
    rest = [i for i in range(len(originals)) if i not in with_copies]
    assert traits.repeats([np.array(with_copies + rest)] * 3, planted) == 0.5


def test_copies_carry_what_their_originals_carry() -> None:
    planted = traits.with_copies(0)
    originals = np.array(planted.originals)
    for o in range(8):
        columns = planted.problem.data.views[0][:, originals == o]
        assert columns.shape[1] == 3
        assert np.corrcoef(columns.T).min() == pytest.approx(1)


# --- drift ----------------------------------------------------------------------------------------


def course(*leads: bool) -> list[Row]:
    """Rows of a stream whose new features lead or not, chunk by chunk."""
    return [
        {"chunk": i, "old": 0.2 if lead else 0.8, "new": 0.8 if lead else 0.2}
        for i, lead in enumerate(leads, 1)
    ]


@pytest.mark.parametrize(
    ("leads", "expected"),
    [
        ([False] * 4 + [True] * 4, 1),
        ([False] * 6 + [True] * 2, 3),
        ([False] * 4 + [True, False, True, True], 3),  # a lead that is lost again does not count
        ([False] * 8, float("inf")),
    ],
)
def test_chunks_until_the_new_features_lead_for_good(leads: list[bool], expected: float) -> None:
    assert drift.chunks_until_lead(course(*leads)) == expected


def test_half_way_other_features_become_informative() -> None:
    for changes in (True, False):
        stream = drift.make_stream(0, 20, drift=changes)
        x = stream.data.views[0]
        late = x[len(x) // 2 :].var(axis=0)
        first, second = late[:8].mean(), late[8:16].mean()
        assert (second > first + 0.01) == changes
        assert (first > second + 0.01) == (not changes)


def test_with_decay_the_new_features_come_to_lead() -> None:
    settings = planned("drift", decay=0.8, drift="yes")
    rows = measured("drift", settings)
    assert len(rows) == drift.CHUNKS
    assert 1 <= drift.chunks_until_lead(rows) <= 25
