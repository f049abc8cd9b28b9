import numpy as np
import pytest

from stream_fs.evaluate.methods.registry import ALL_FEATURES
from stream_fs.evaluate.report.main_comparison import (
    against,
    by_judge,
    comparison_tables,
    differences,
    mean_sentences,
)
from stream_fs.evaluate.report.results import (
    Contender,
    PairedResults,
)
from tests.support.report_rows import (
    ENTRIES,
    SETS,
    ranking_rows,
)


def test_differences_are_paired_and_have_both_standard_errors() -> None:
    found = against(PairedResults(ranking_rows()), SETS, Contender("variance", "sqrt"))
    # 3Sources 0.10 and 0.14, USPS 0.30 and 0.34
    assert found.mean == pytest.approx(0.22)
    assert found.repetition_error == pytest.approx(np.sqrt(2 * 0.02**2) / 2)
    assert found.dataset_error == pytest.approx(0.1)
    assert found.wins == 2
    assert found.clear


def test_tables_of_the_main_comparison() -> None:
    paired = PairedResults(ranking_rows())
    names = [table.title for table in comparison_tables(paired, ENTRIES)]
    assert len(names) == 6
    table = differences(paired, SETS, "development")
    rows = {row[0]: row for row in table.rows}
    assert rows["variance √"][1:6] == ["+0.220", "0.014", "0.100", "2 of 2", "better"]
    assert rows[ALL_FEATURES][1] == "-0.050"
    assert rows[ALL_FEATURES][5] == "worse"
    assert rows["random √"][5] == "none"
    assert "default √" not in rows


def test_every_judge_has_errors_and_marks() -> None:
    rows = {
        row[0]: row
        for row in by_judge(PairedResults(ranking_rows()), SETS, "development", "nmi").rows
    }
    # 0.50 and 0.52 on both sets: ± 0.01 each, 0.007 together.
    assert rows["default √"][1:] == ["0.510 ± 0.007"] * 3
    assert rows["variance √"][1:] == ["0.290 ± 0.007*"] * 3
    assert rows["random √"][1:] == ["0.510 ± 0.007"] * 3
    flat = {
        row[0]: row
        for row in by_judge(PairedResults(ranking_rows()), SETS, "development", "f").rows
    }
    assert flat["variance √"][1:] == ["0.200 ± 0.000"] * 3


def test_overall_means_in_words() -> None:
    text = list(mean_sentences(PairedResults(ranking_rows()), ENTRIES))
    assert len(text) == 1
    assert "default √ 0.510, all features 0.560, paper √, the best" in text[0]
