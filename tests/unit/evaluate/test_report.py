import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from stream_fs.evaluate.errors import DataMalformed
from stream_fs.evaluate.methods.registry import ALL, BUDGETS, METHODS
from stream_fs.evaluate.plan import Entry, Options, Row
from stream_fs.evaluate.report.contents import Progress, sections
from stream_fs.evaluate.report.goals import (
    beside_variance,
    find_goals,
    goals_table,
    in_words,
    variance_in_words,
    variance_table,
)
from stream_fs.evaluate.report.main_comparison import (
    against,
    by_judge,
    compared_tables,
    differences,
    means_in_words,
)
from stream_fs.evaluate.report.page import Table, html, markdown, number, signed, with_error
from stream_fs.evaluate.report.paper_figures import (
    TABLES,
    best_of_grid,
    published_tables,
    read_published,
)
from stream_fs.evaluate.report.results import OURS, Cells, Contender, difference, estimate, overall

SETS = ("3Sources", "USPS")
ENTRIES = [Entry(name, "development", 100, (3, 4), 2, "abc") for name in SETS]
SHARES = (0.1, 0.3)


def ranking(repetitions: int = 2, skipped: Sequence[str] = ()) -> list[Row]:
    """Rows in which `default √` has 0.5, variance 0.1 less on 3Sources and 0.3 less on USPS."""
    rows: list[Row] = []
    for name in SETS:
        for repetition in range(repetitions):
            for method in METHODS:
                if method in skipped and repetition:
                    continue
                for budget in BUDGETS:
                    for share in (1.0,) if method == ALL else SHARES:
                        for judge in ("gimc scaled", "spectral raw"):
                            nmi = 0.5 + 0.02 * repetition
                            if method == "variance":
                                nmi -= 0.1 if name == "3Sources" else 0.3
                                nmi -= 0.04 * repetition
                            elif method == ALL:
                                nmi += 0.05
                            row: Row = {"dataset": name, "repetition": repetition}
                            row |= {"method": method, "budget": budget, "share": share}
                            row |= {"judge": judge, "nmi": nmi, "ari": 0.1, "f": 0.2}
                            rows.append(row)
    return rows


def test_values_are_means_over_judges_and_shares() -> None:
    cells = Cells(ranking())
    np.testing.assert_allclose(cells.values("USPS", OURS), [0.5, 0.52])
    np.testing.assert_allclose(cells.values("USPS", Contender("variance", "sqrt")), [0.2, 0.18])
    np.testing.assert_allclose(cells.values("USPS", OURS, "f", ["gimc scaled"], [0.1]), [0.2, 0.2])


def test_a_repetition_counts_only_when_every_method_has_it() -> None:
    cells = Cells(ranking(skipped=["OMVFS"]))
    assert cells.repetitions == {"3Sources": [0], "USPS": [0]}
    np.testing.assert_allclose(cells.values("USPS", OURS), [0.5])


def test_differences_are_paired_and_have_both_standard_errors() -> None:
    found = against(Cells(ranking()), SETS, Contender("variance", "sqrt"))
    # 3Sources 0.10 and 0.14, USPS 0.30 and 0.34
    assert found.mean == pytest.approx(0.22)
    assert found.repetitions == pytest.approx(np.sqrt(2 * 0.02**2) / 2)
    assert found.sets == pytest.approx(0.1)
    assert found.wins == 2
    assert found.clear


def test_a_difference_below_a_standard_error_is_not_claimed() -> None:
    values = {"a": [0.3, 0.3], "b": [-0.1, -0.1], "c": [-0.1, -0.1]}
    found = difference(list(values), lambda name: np.array(values[name]), lambda _: np.zeros(2))
    assert found.mean == pytest.approx(1 / 30)
    assert not found.clear


def test_a_set_that_was_not_repeated_is_taken_to_vary_as_the_others() -> None:
    values = {"a": [0.0, 0.2], "b": [0.1]}
    found = difference(
        list(values), lambda n: np.array(values[n]), lambda n: 0 * np.array(values[n])
    )
    assert found.repetitions == pytest.approx(np.sqrt(2 * 0.1**2) / 2)


def test_tables_of_the_main_comparison() -> None:
    cells = Cells(ranking())
    names = [table.title for table in compared_tables(cells, ENTRIES)]
    assert len(names) == 6
    table = differences(cells, SETS, "development")
    rows = {row[0]: row for row in table.rows}
    assert rows["variance √"][1:6] == ["+0.220", "0.014", "0.100", "2 of 2", "better"]
    assert rows[ALL][1] == "-0.050"
    assert rows[ALL][5] == "worse"
    assert rows["random √"][5] == "none"
    assert "default √" not in rows


def test_means_have_the_standard_error_over_repetitions() -> None:
    found = overall({"a": np.array([0.4, 0.6]), "b": np.array([0.1, 0.1])})
    assert found.mean == pytest.approx(0.3)
    assert found.error == pytest.approx(0.1 / 2)


def test_every_judge_has_errors_and_marks() -> None:
    rows = {row[0]: row for row in by_judge(Cells(ranking()), SETS, "development", "nmi").rows}
    # 0.50 and 0.52 on both sets: ± 0.01 each, 0.007 together.
    assert rows["default √"][1:] == ["0.510 ± 0.007"] * 3
    assert rows["variance √"][1:] == ["0.290 ± 0.007*"] * 3
    assert rows["random √"][1:] == ["0.510 ± 0.007"] * 3
    flat = {row[0]: row for row in by_judge(Cells(ranking()), SETS, "development", "f").rows}
    assert flat["variance √"][1:] == ["0.200 ± 0.000"] * 3


def test_goals_tell_what_is_not_met() -> None:
    found = find_goals(Cells(ranking()), ENTRIES)
    results = {goal.text: goal.result for goal in found}
    for judge in ("both judges", "gimc", "spectral"):
        assert results[f"ahead of variance √ on at least 2 of 2 data sets, {judge}"] == "met"
    assert results["above all features with 30% of them"] == "not met"
    assert results["above every other ranking method, either budget, gimc"] == "not met"
    assert len(goals_table(found).rows) == len(found) == 9


def test_a_judge_that_sees_variance_ahead_is_named() -> None:
    rows = ranking()
    for row in rows:
        if row["method"] == "variance" and row["judge"] == "spectral raw":
            row["nmi"] = 0.6 if row["dataset"] == "USPS" else row["nmi"]
    goal = "ahead of variance √ on at least 2 of 2 data sets"
    found = {of.text: of for of in find_goals(Cells(rows), ENTRIES)}
    assert found[f"{goal}, gimc"].result == "met"
    assert found[f"{goal}, spectral"].result == "not met"
    assert found[f"{goal}, spectral"].measured == "1, not USPS"


def test_goals_in_words_count_and_name() -> None:
    text = list(in_words(find_goals(Cells(ranking()), ENTRIES)))
    assert len(text) == 1
    assert text[0].startswith("Development data: 6 of 9 goals are met. Not met: above every other")
    assert "above all features with 30% of them (-0.050 ± 0.000)" in text[0]


def test_overall_means_in_words() -> None:
    text = list(means_in_words(Cells(ranking()), ENTRIES))
    assert len(text) == 1
    assert "default √ 0.510, all features 0.560, paper √, the best" in text[0]


def test_the_page_names_the_sets_on_which_variance_is_as_good() -> None:
    rows = ranking(repetitions=3)
    for row in rows:
        if row["dataset"] == "3Sources" and row["method"] == "variance":
            # Ahead once, behind once: no difference above its standard error.
            ahead = (-0.1, 0.0, 0.1)[int(row["repetition"])]
            worse = 0.2 if row["budget"] == "proportional" else 0.0
            row["nmi"] = 0.5 + 0.02 * int(row["repetition"]) + ahead - worse
    cells = Cells(rows)
    found = beside_variance(cells, ENTRIES)
    assert [of.variance for of in found] == [Contender("variance", "sqrt")] * 2
    assert found[0].ours.mean == pytest.approx(0.0)
    assert found[0].ours.error == pytest.approx(0.1 / np.sqrt(3))
    text = variance_in_words(found)
    assert "not clearly ahead of variance, better budget, on 3Sources (+0.000 ± 0.058)." in text
    assert "On 3Sources no ranking that was measured is." in text
    assert "USPS" not in text
    assert [row[6] for row in variance_table(cells, found).rows] == ["level", "ahead"]


def test_variance_is_behind_everywhere_or_was_measured_once() -> None:
    text = variance_in_words(beside_variance(Cells(ranking()), ENTRIES))
    assert text == "default √ is clearly ahead of variance, with either budget, on every data set."
    cells = Cells(ranking(repetitions=1))
    once = beside_variance(cells, ENTRIES)
    assert variance_in_words(once) == "Measured once, so that nothing can be said: 3Sources, USPS."
    assert [row[6] for row in variance_table(cells, once).rows] == ["not known"] * 2


def test_markup_in_a_table_is_text() -> None:
    table = Table("<b>", ["a|b"], [["<script>"]], "1 < 2")
    assert "<script>" not in table.html()
    assert "&lt;script&gt;" in table.html()
    assert "| a\\|b |" in table.markdown()


def test_figures_in_tables() -> None:
    assert number(0.12345) == "0.123"
    assert number(float("nan")) == "–"
    assert signed(0.1) == "+0.100"
    assert with_error(estimate([1.0, 3.0])) == "2.000 ± 1.000"
    assert with_error(estimate([1.0])) == "1.000"


def test_the_best_setting_is_chosen_by_its_mean() -> None:
    rows: list[Row] = [
        {"dataset": "a", "share": 0.1, "parameter": p, "value": 1.0, "nmi": nmi}
        for p, nmi in [("beta", 0.9), ("beta", 0.1), ("eta", 0.6), ("eta", 0.6)]
    ]
    assert best_of_grid(rows, "nmi") == {("a", "0.1"): pytest.approx(0.6)}


def test_the_papers_figures_stand_beside_ours_and_recomputed_sets_are_marked(
    tmp_path: Path,
) -> None:
    assert read_published(tmp_path) == {}
    lines = ["metric,dataset,ratio,method,value", "NMI,3S,0.1,I2MUFS,0.7", "NMI,3S,0.3,I2MUFS,0.8"]
    (tmp_path / TABLES).write_text("\n".join(lines) + "\n")
    grid: list[Row] = [
        {
            "dataset": name,
            "share": share,
            "parameter": "middle",
            "value": 0.0,
            "nmi": 0.4,
            "ari": 0.1,
            "f": 0.1,
        }
        for name in SETS
        for share in SHARES
    ]
    tables = published_tables(read_published(tmp_path), grid, Cells(ranking()))
    rows = {row[0]: row for row in tables[1].rows}
    assert rows["3Sources"][1:5] == ["0.750", "0.400", "0.510", "0.510"]
    assert rows["USPS †"][1] == "–"


def test_a_file_that_is_not_the_papers_tables_is_an_error(tmp_path: Path) -> None:
    (tmp_path / TABLES).write_text("a,b\n1,2\n")
    with pytest.raises(DataMalformed, match="needs the columns metric"):
        read_published(tmp_path)


def test_the_page_needs_nothing_but_itself() -> None:
    found = sections({"ranking": ranking()}, ENTRIES, Options(rows=3000), {}, Progress(3, 4))
    page = html(found)
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)
    assert not re.search(r"https?:|url\(|@import|<script|<link", page)
    assert page.count("data:image/png;base64,") == 1
    assert "RNE, ASVW, CGMV-UFS, ASE-UFS, CoUFC" in page
    assert "development" in page
    assert "no, recomputed" in page
    text = markdown(found)
    assert "3 of 4 measurements are there." in text
    assert "data sets of more than 3000 rows" in text
    assert "### Goals, one by one" in text
    assert text.index("## In short") < text.index("## What was measured")
    assert "- Not finished: 3 of 4 measurements are there." in text


def test_the_same_rows_give_the_same_page() -> None:
    first, again = (
        html(sections({"ranking": ranking()}, ENTRIES, Options(), {}, Progress(1, 1)))
        for _ in range(2)
    )
    assert first == again


def test_a_page_without_rows_tells_what_is_planned() -> None:
    page = html(sections({}, ENTRIES, Options(), {}, Progress(0, 9)))
    assert "0 of 9 measurements" in page
    assert "Goals" not in page
    assert "coding rows by 300 anchors" in page


def test_every_place_that_the_page_points_to_is_there() -> None:
    page = html(sections({"ranking": ranking()}, ENTRIES, Options(), {}, Progress(1, 1)))
    places = re.findall(r'href="#([^"]+)"', page)
    assert places
    assert all(f'id="{place}"' in page for place in places)


def test_figures_stand_on_the_right_and_results_are_seen() -> None:
    rows = [["a", "0.1*", "met"], ["b", "–", "not met"]]
    page = Table("t", ["name", "value", "result"], rows, strong="b").html()
    assert '<td class="figures">0.1<span class="mark">*</span></td>' in page
    assert '<td class="words good">met</td>' in page
    assert '<tr class="strong"><td class="words">b</td>' in page


def test_the_grid_of_the_paper_takes_only_whole_repetitions() -> None:
    grid: list[Row] = [
        {
            "dataset": "3Sources",
            "repetition": repetition,
            "share": 0.1,
            "parameter": parameter,
            "value": 0.1,
            "nmi": nmi,
            "ari": 0.1,
            "f": 0.1,
        }
        for repetition, parameter, nmi in [
            (0, "middle", 0.5),
            (0, "beta", 0.4),
            # Stopped before beta: an easy repetition that only the middle has.
            (1, "middle", 0.9),
        ]
    ]
    found = sections({"grid": grid}, ENTRIES, Options(), {}, Progress(3, 4))
    tables = [table for section in found for table in section.tables]
    best = next(table for table in tables if "protocol" in table.title)
    assert list(best.rows[0]) == ["NMI", "3Sources", "ours", "0.500"]
