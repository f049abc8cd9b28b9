from stream_fs.evaluate.methods.registry import ALL_FEATURES, BUDGETS, METHODS
from stream_fs.evaluate.protocol import JUDGE_VARIANTS
from tests.support.experiments import TINY, measured, plan_settings, planned


def test_the_main_comparison_has_every_budget_share_and_judge() -> None:
    rows = measured("ranking", planned("ranking", method="variance"))
    assert {(row["budget"], row["share"], row["judge"]) for row in rows} == {
        (budget, 0.5, variant) for budget in BUDGETS for variant in JUDGE_VARIANTS
    }
    assert len(rows) == 8
    assert all(float(row["nmi"]) > 0.8 for row in rows)
    everything = measured("ranking", planned("ranking", method=ALL_FEATURES))
    assert {row["share"] for row in everything} == {1.0}
    assert {of["method"] for of in plan_settings("ranking", TINY)} == set(METHODS)
