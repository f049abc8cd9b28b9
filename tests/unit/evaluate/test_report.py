import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from stream_fs.evaluate.errors import DataMalformed
from stream_fs.evaluate.methods import ALL, BUDGETS, METHODS
from stream_fs.evaluate.plan import Entry, Options, Row
from stream_fs.evaluate.report import others
from stream_fs.evaluate.report.cells import OURS, Cells, Contender, difference
from stream_fs.evaluate.report.compared import against, compared_tables, differences, goals
from stream_fs.evaluate.report.page import Progress, html, markdown, sections
from stream_fs.evaluate.report.published import (
    TABLES,
    best_of_grid,
    published_tables,
    read_published,
)
from stream_fs.evaluate.report.tables import Table, number, signed, with_error
from stream_fs.evaluate.statistics import estimate

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


def test_goals_tell_what_is_not_met() -> None:
    results = {(row[1]): row[3] for row in goals(Cells(ranking()), ENTRIES).rows}
    assert results["ahead of variance √ on at least 2 of 2 data sets"] == "met"
    assert results["above all features with 30% of them"] == "not met"
    assert results["above every other ranking method, either budget, gimc"] == "not met"


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


def test_tables_compare_only_problems_that_have_everything() -> None:
    rows: list[Row] = [
        {"dataset": "a", "repetition": repetition, "variant": variant, "nmi": nmi}
        for repetition, variant, nmi in [
            (0, "as it is", 0.5),
            (0, "no graph", 0.4),
            (1, "as it is", 0.9),
        ]
    ]
    table = others.other_tables({"ablation": rows}, {})[0]
    assert [row[:3] for row in table.rows] == [
        ["as it is", "0.500", "+0.000"],
        ["no graph", "0.400", "-0.100"],
    ]


def test_drift_is_told_by_decay() -> None:
    rows: list[Row] = [
        {"repetition": 0, "decay": 0.9, "drift": d, "chunk": c}
        | {"old": 0.9 if d == "no" or c < 6 else 0.1, "new": 0.1 if d == "no" or c < 6 else 0.9}
        for d in ("yes", "no")
        for c in range(1, 11)
    ]
    row = others.drift_table(rows)[0].rows[0]
    assert list(row) == ["0.9", "1", "1 of 1", "0.900", "0.900"]


def test_the_page_needs_nothing_but_itself() -> None:
    found = sections({"ranking": ranking()}, ENTRIES, Options(rows=3000), {}, Progress(3, 4))
    page = html(found)
    assert not re.search(r'(?:src|href)="(?!data:)', page)
    assert not re.search(r"https?:|url\(|@import|<script|<link", page)
    assert page.count("data:image/png;base64,") == 1
    assert "RNE, ASVW, CGMV-UFS, ASE-UFS, CoUFC" in page
    assert "development" in page
    assert "no, recomputed" in page
    text = markdown(found)
    assert "3 of 4 measurements are there." in text
    assert "data sets of more than 3000 rows" in text
    assert "### Goals" in text


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
