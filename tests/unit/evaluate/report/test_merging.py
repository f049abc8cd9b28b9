from stream_fs.evaluate.plan import Row
from stream_fs.evaluate.report.merging import (
    GENERATED,
    merging_table,
)
from tests.support.report_rows import (
    merging_rows,
)


def test_merging_is_paired_with_one_model() -> None:
    table = merging_table([*merging_rows("digits", 2), *merging_rows("", 4)])
    rows = {(row[0], row[2], row[4]): list(row[5:]) for row in table.rows}
    assert rows["digits", "1", "single"] == ["1.000 ± 0.000", "0.550", "+0.000 ± 0.000"]
    assert rows["digits", "2", "merged"] == ["0.800 ± 0.000", "0.520", "-0.030 ± 0.010"]
    assert rows[GENERATED, "4", "merged"] == ["0.600 ± 0.000", "0.490", "-0.060 ± 0.020"]
    assert [row[0] for row in table.rows] == ["digits"] * 2 + [GENERATED] * 3
    assert len(table.figures) == 2


def test_the_table_pairs_changes_by_repetition() -> None:
    def row(method: str, repetition: int, nmi: float, partitions: int) -> Row:
        marked_name: Row = {"dataset": "set", "cut": "even", "repetition": repetition, "rows": 100}
        return {
            **marked_name,
            "partitions": partitions,
            "method": method,
            "overlap": 0.5,
            "nmi": nmi,
        }

    rows = [row("single", 0, 0.5, 1), row("single", 1, 0.7, 1)]
    rows += [row("merged", 0, 0.4, 2), row("merged", 1, 0.8, 2)]
    table = merging_table(rows)
    last = ["set", "even", "2", "100", "merged", "0.500 ± 0.000", "0.600", "+0.000 ± 0.100"]
    assert table.rows[-1] == last
    assert len(table.figures) == 2
