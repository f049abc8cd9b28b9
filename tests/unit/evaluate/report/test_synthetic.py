from stream_fs.evaluate.plan import Row
from stream_fs.evaluate.report.synthetic import (
    USELESS,
    stability_table,
    traits_sentence,
    traits_table,
)


def test_planted_features_by_method() -> None:
    rows: list[Row] = [
        {
            "dataset": "",
            "repetition": repetition,
            "method": method,
            **{f"useless: {kind}": 0.25 for kind in USELESS},
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
    text = traits_sentence(rows)
    assert "probability 0.98, with the best of the others (OMVFS) 0.61." in text


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
