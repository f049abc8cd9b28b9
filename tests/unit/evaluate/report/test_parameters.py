import pytest

from stream_fs.evaluate.plan import Row
from stream_fs.evaluate.report.parameters import (
    ablation_table,
    judge_table,
    missing_table,
    parameter_table,
    variant_changes,
)
from tests.support.report_rows import (
    ABLATION,
    nmi_rows,
)


def test_the_ablation_claims_what_is_above_both_errors() -> None:
    rows = {row[0]: row[1:] for row in ablation_table(ABLATION).rows}
    assert rows["as it is"] == ["0.400", "+0.000", "0.000", "0.000", "0 of 2", "–"]
    assert rows["no graph"] == ["0.300", "-0.100", "0.000", "0.000", "0 of 2", "worse"]
    assert rows["unit rows"] == ["0.400", "+0.000", "0.000", "0.100", "1 of 2", "none"]
    assert rows["decay 0.9"][-1] == "better"
    assert variant_changes(ABLATION)["unit rows"].dataset_error == pytest.approx(0.1)


def test_missing_instances_with_the_error_over_repetitions() -> None:
    rows: list[Row] = []
    for level in (0.5, 0.1):
        values = {"default": {"a": (0.4, 0.6), "b": (0.1, 0.1)}, "variance": {"a": (0.2, 0.2)}}
        rows += [{**row, "missing": level} for row in nmi_rows("method", values)]
    table = missing_table(rows)
    assert table.header == ["method", "10%", "50%"]
    assert list(table.rows[0]) == ["default", *["0.300 ± 0.050"] * 2]
    assert list(table.rows[1]) == ["variance", *["0.200 ± 0.000"] * 2]
    assert len(table.figures) == 1


def test_parameters_are_paired_with_the_middle() -> None:
    rows: list[Row] = [
        {"dataset": dataset, "repetition": 0, "parameter": parameter, "value": value, "nmi": nmi}
        for parameter, value, by_set in [
            ("middle", 0.0, (0.5, 0.3)),
            ("beta", 10.0, (0.4, 0.0)),
            ("beta", 0.1, (0.6, 0.4)),
            ("lam", 2.0, (0.5, 0.4)),
        ]
        for dataset, nmi in zip("ab", by_set, strict=True)
    ]
    table = parameter_table(rows, "default", {"beta": 1.0, "lam": 3.0})
    assert [list(row) for row in table.rows] == [
        ["beta", "0.1", "0.500", "+0.100 ± 0.000", "better"],
        ["beta", "1", "0.400", "–", "middle"],
        ["beta", "10", "0.200", "-0.200 ± 0.100", "worse"],
        ["lam", "2", "0.450", "+0.050 ± 0.050", "none"],
        ["lam", "3", "0.400", "–", "middle"],
    ]
    assert "NMI in the middle is 0.400" in table.note
    assert len(table.figures) == 2


def test_settings_of_the_judge() -> None:
    rows: list[Row] = [
        {
            "dataset": dataset,
            "repetition": 0,
            "method": method,
            "setting": setting,
            "value": value,
            "nmi": nmi,
        }
        for dataset in ("a", "b")
        for method, nmi in (("all features", 0.6), ("default", 0.4 if dataset == "a" else 0.5))
        for setting, value in (("in use", 0.0), ("pull", 0.01))
    ]
    table = judge_table(rows)
    assert table.header == ["setting", "value", "all features", "default"]
    assert [list(row) for row in table.rows] == [
        ["in use", "–", "0.600", "0.450"],
        ["pull", "0.01", "0.600", "0.450"],
    ]
