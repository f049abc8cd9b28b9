import numpy as np
import pytest

from stream_fs.evaluate.report.goals import (
    compare_with_variance,
    find_goals,
    goal_sentences,
    goals_table,
    variance_sentence,
    variance_table,
)
from stream_fs.evaluate.report.results import (
    Contender,
    PairedResults,
)
from tests.support.report_rows import (
    ENTRIES,
    ranking_rows,
)


def test_goals_that_are_not_met_are_listed() -> None:
    found = find_goals(PairedResults(ranking_rows()), ENTRIES)
    paired = {goal.text: goal.result for goal in found}
    for judge in ("both judges", "gimc", "spectral"):
        assert paired[f"ahead of variance √ on at least 2 of 2 data sets, {judge}"] == "met"
    assert paired["above all features with 30% of them"] == "not met"
    assert paired["above every other ranking method, either budget, gimc"] == "not met"
    assert len(goals_table(found).rows) == len(found) == 9


def test_a_judge_that_sees_variance_ahead_is_named() -> None:
    rows = ranking_rows()
    for row in rows:
        if row["method"] == "variance" and row["judge"] == "spectral raw":
            row["nmi"] = 0.6 if row["dataset"] == "USPS" else row["nmi"]
    goal = "ahead of variance √ on at least 2 of 2 data sets"
    found = {of.text: of for of in find_goals(PairedResults(rows), ENTRIES)}
    assert found[f"{goal}, gimc"].result == "met"
    assert found[f"{goal}, spectral"].result == "not met"
    assert found[f"{goal}, spectral"].measured == "1, not USPS"


def test_goals_in_words_count_and_name() -> None:
    text = list(goal_sentences(find_goals(PairedResults(ranking_rows()), ENTRIES)))
    assert len(text) == 1
    assert text[0].startswith("Development data: 6 of 9 goals are met. Not met: above every other")
    assert "above all features with 30% of them (-0.050 ± 0.000)" in text[0]


def test_the_page_names_the_sets_on_which_variance_is_as_good() -> None:
    rows = ranking_rows(repetitions=3)
    for row in rows:
        if row["dataset"] == "3Sources" and row["method"] == "variance":
            # Ahead once, behind once: no difference above its standard error.
            ahead = (-0.1, 0.0, 0.1)[int(row["repetition"])]
            worse = 0.2 if row["budget"] == "proportional" else 0.0
            row["nmi"] = 0.5 + 0.02 * int(row["repetition"]) + ahead - worse
    paired = PairedResults(rows)
    found = compare_with_variance(paired, ENTRIES)
    assert [of.variance for of in found] == [Contender("variance", "sqrt")] * 2
    assert found[0].default.mean == pytest.approx(0.0)
    assert found[0].default.error == pytest.approx(0.1 / np.sqrt(3))
    text = variance_sentence(found)
    assert "not clearly ahead of variance, better budget, on 3Sources (+0.000 ± 0.058)." in text
    assert "On 3Sources no ranking that was measured is." in text
    assert "USPS" not in text
    assert [row[6] for row in variance_table(paired, found).rows] == ["level", "ahead"]


def test_variance_is_behind_everywhere_or_was_measured_once() -> None:
    text = variance_sentence(compare_with_variance(PairedResults(ranking_rows()), ENTRIES))
    assert text == "default √ is clearly ahead of variance, with either budget, on every data set."
    paired = PairedResults(ranking_rows(repetitions=1))
    once = compare_with_variance(paired, ENTRIES)
    assert variance_sentence(once) == "Measured once, which allows no conclusion: 3Sources, USPS."
    assert [row[6] for row in variance_table(paired, once).rows] == ["not known"] * 2
