"""Tables of the other experiments, from rows whose figures are known."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from stream_fs.evaluate.experiments.speed import INCREMENTS
from stream_fs.evaluate.plan import Row
from stream_fs.evaluate.report.contents import other_tables
from stream_fs.evaluate.report.cost import (
    MADE,
    OTHERS,
    convergence_figures,
    merging_table,
    relative_objectives,
    speed_tables,
)
from stream_fs.evaluate.report.parameters import (
    ablation_table,
    changes,
    judging_table,
    missing_table,
    parameter_table,
    tried_tables,
    variants_table,
)
from stream_fs.evaluate.report.results import comparable, complete, nmi_by_set
from stream_fs.evaluate.report.synthetic import (
    TRAITS,
    planted_in_words,
    stability_table,
    traits_table,
)


def nmi_rows(column: str, values: Mapping[str, Mapping[str, Sequence[float]]]) -> list[Row]:
    """Value of the column → data set → NMI by repetition."""
    return [
        {"dataset": dataset, "repetition": repetition, column: value, "nmi": nmi}
        for value, of in values.items()
        for dataset, found in of.items()
        for repetition, nmi in enumerate(found)
    ]


ABLATION = nmi_rows(
    "variant",
    {
        "as it is": {"a": (0.5, 0.5), "b": (0.3, 0.3)},
        "no graph": {"a": (0.4, 0.4), "b": (0.2, 0.2)},
        "unit rows": {"a": (0.6, 0.6), "b": (0.2, 0.2)},
        "decay 0.9": {"a": (0.6, 0.6), "b": (0.4, 0.4)},
    },
)


def test_tables_compare_only_problems_that_have_everything() -> None:
    rows: list[Row] = [
        {"dataset": "a", "repetition": repetition, "variant": variant, "nmi": nmi}
        for repetition, variant, nmi in [
            (0, "as it is", 0.5),
            (0, "no graph", 0.4),
            (1, "as it is", 0.9),
        ]
    ]
    whole = comparable({"ablation": rows, "merging": rows})
    assert [row["nmi"] for row in whole["ablation"]] == [0.5, 0.4]
    assert whole["merging"] == rows


def test_a_problem_with_as_many_but_other_settings_is_not_whole() -> None:
    rows: list[Row] = [
        {"dataset": "a", "repetition": repetition, "method": method}
        for repetition, method in [(0, "x"), (0, "y"), (1, "x"), (1, "z")]
    ]
    assert complete(rows, ["method"]) == rows[:2]
    assert complete([], ["method"]) == []


def test_repetitions_are_paired_by_their_number() -> None:
    rows: list[Row] = [
        {"dataset": "a", "repetition": repetition, "nmi": nmi}
        for repetition, nmi in [(10, 0.3), (2, 0.1), (2, 0.2)]
    ]
    np.testing.assert_allclose(nmi_by_set(rows)["a"], [0.15, 0.3])


def test_the_ablation_claims_what_is_above_both_errors() -> None:
    rows = {row[0]: row[1:] for row in ablation_table(ABLATION).rows}
    assert rows["as it is"] == ["0.400", "+0.000", "0.000", "0.000", "0 of 2", "–"]
    assert rows["no graph"] == ["0.300", "-0.100", "0.000", "0.000", "0 of 2", "worse"]
    assert rows["unit rows"] == ["0.400", "+0.000", "0.000", "0.100", "1 of 2", "none"]
    assert rows["decay 0.9"][-1] == "better"
    assert changes(ABLATION)["unit rows"].sets == pytest.approx(0.1)


def test_what_was_tried_lists_variants_that_do_not_help() -> None:
    table = variants_table(ABLATION)
    assert [row[0] for row in table.rows] == ["no graph", "unit rows"]
    assert table.rows[0][1:] == ["-0.100 ± 0.000", "worse"]
    assert "they would help: decay 0.9." in table.note
    assert len(tried_tables(())) == 1
    assert len(tried_tables(ABLATION)) == 2


def test_planted_features_are_told_by_method() -> None:
    rows: list[Row] = [
        {
            "dataset": "",
            "repetition": repetition,
            "method": method,
            **{f"useless: {kind}": 0.25 for kind in TRAITS},
            "auc": auc + 0.02 * repetition,
            "repeats": 0.5,
            "rank correlation in other units": 1.0,
        }
        for method, auc in (("default", 0.97), ("variance", 0.4), ("OMVFS", 0.6))
        for repetition in range(2)
    ]
    table = traits_table(rows)
    assert [row[0] for row in table.rows] == ["default", "variance", "OMVFS"]
    assert list(table.rows[0][1:5]) == ["0.250 ± 0.000"] * 4
    assert list(table.rows[0][5:]) == ["0.980 ± 0.010", "0.500 ± 0.000", "1.000 ± 0.000"]
    text = planted_in_words(rows)
    assert "chance 0.98, with the best of the others (OMVFS) 0.61." in text


def test_stability_is_a_mean_over_data_sets_that_have_it() -> None:
    nan = float("nan")
    rows: list[Row] = [
        {
            "dataset": dataset,
            "repetition": repetition,
            "method": "default",
            "chunks": chunks,
            "halves": 0.5,
            "units": units,
        }
        for dataset, repetition, chunks, units in [
            ("a", 0, 0.9, 1.0),
            ("a", 1, 0.7, 1.0),
            ("b", 0, 0.6, nan),
            ("b", 1, nan, nan),
        ]
    ]
    table = stability_table(rows)
    assert list(table.rows[0]) == ["default", "0.700 ± 0.100", "0.500 ± 0.000", "1.000"]
    assert "mean over 2 data sets" in table.note


SPEED: list[Row] = [
    # The second repetition takes three times as long: the mean is twice the first.
    {
        "dataset": dataset,
        "repetition": repetition,
        "method": method,
        "increment": increment,
        "seconds": seconds * (1 + 2 * repetition),
    }
    for dataset in ("3Sources", "USPS")
    for repetition in range(2)
    for increment in range(1, INCREMENTS + 1)
    for method, seconds in [("default", 0.5), ("paper", 0.25)]
    + [(name, 1.0) for name in OTHERS if name != "paper"]
]


def test_speed_is_told_as_ratios_to_either_preset() -> None:
    published = {
        ("speedup", "3S", "0.1", "RNE"): 210.4,
        ("speedup", "3S", "0.1", "OMVFS"): 2.87,
        ("speedup", "3S", "0.3", "OMVFS"): 3.67,
        ("NMI", "3S", "0.1", "ASVW"): 0.5,
    }
    ours, theirs = speed_tables(SPEED, published)
    assert len(ours.rows) == len(theirs.rows) == 2 * INCREMENTS
    first = dict(zip(ours.header, ours.rows[0], strict=True))
    assert first["default, s"] == "1.000"
    assert (first["paper"], first["OMVFS"], first["default, again"]) == ("0.5", "2.0", "2.0")
    assert theirs.header[3:] == ["OMVFS here", "OMVFS in the paper", "LapScore here"]
    assert list(theirs.rows[0]) == ["3Sources", "10 %", "0.500", "4.0", "2.9", "4.0"]
    assert theirs.rows[1][4] == "–"
    assert theirs.rows[2][4] == "3.7"
    assert theirs.rows[INCREMENTS][0] == "USPS †"
    assert "of the paper's columns: RNE." in theirs.note
    assert "Not in the paper's table: LapScore." in theirs.note


def test_speed_without_the_papers_figures() -> None:
    theirs = speed_tables(SPEED, {})[1]
    assert theirs.header[3:] == ["OMVFS here", "LapScore here"]
    assert "Missing here" not in theirs.note


def test_convergence_draws_the_first_chunk_and_the_last() -> None:
    rows: list[Row] = [
        {
            "dataset": "a",
            "repetition": 0,
            "preset": preset,
            "chunk": chunk,
            "iteration": iteration,
            "objective": objective,
        }
        for preset in ("default", "paper")
        for chunk in ("first", "last")
        for iteration, objective in ((2, 2.0), (1, 4.0), (3, 1.0))
    ]
    assert len(set(convergence_figures(rows).figures)) == 4
    assert relative_objectives(rows[:3]) == {"a": [1.0, 0.5, 0.25]}


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
    assert "the middle gives 0.400" in table.note
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
    table = judging_table(rows)
    assert table.header == ["setting", "value", "all features", "default"]
    assert [list(row) for row in table.rows] == [
        ["in use", "–", "0.600", "0.450"],
        ["pull", "0.01", "0.600", "0.450"],
    ]


def merged(dataset: str, most: int) -> list[Row]:
    return [
        {
            "dataset": dataset,
            "repetition": repetition,
            "cut": "even",
            "partitions": partitions,
            "rows": 1000 // partitions,
            "method": method,
            "overlap": overlap,
            "nmi": 0.5 + 0.1 * repetition - lost * (1 + repetition),
        }
        for repetition in range(2)
        for partitions, method, overlap, lost in [
            (1, "single", 1.0, 0.0),
            (2, "merged", 0.8, 0.02),
            (4, "merged", 0.6, 0.04),
        ]
        if partitions <= most
    ]


def test_merging_is_paired_with_one_model() -> None:
    table = merging_table([*merged("digits", 2), *merged("", 4)])[0]
    rows = {(row[0], row[2], row[4]): list(row[5:]) for row in table.rows}
    assert rows["digits", "1", "single"] == ["1.000 ± 0.000", "0.550", "+0.000 ± 0.000"]
    assert rows["digits", "2", "merged"] == ["0.800 ± 0.000", "0.520", "-0.030 ± 0.010"]
    assert rows[MADE, "4", "merged"] == ["0.600 ± 0.000", "0.490", "-0.060 ± 0.020"]
    assert [row[0] for row in table.rows] == ["digits"] * 2 + [MADE] * 3
    assert len(table.figures) == 2


def test_experiments_without_rows_have_no_heading() -> None:
    assert other_tables({"traits": [], "ablation": []}, {}) == {}
    found = other_tables({"merging": merged("digits", 2), "ablation": ABLATION}, {})
    assert list(found) == ["What parts and settings are worth", "Merging partitions"]
