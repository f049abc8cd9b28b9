from stream_fs.evaluate.report.negative_results import (
    rejected_tables,
    rejected_variants_table,
)
from tests.support.report_rows import (
    ABLATION,
)


def test_variants_without_improvement_are_listed() -> None:
    table = rejected_variants_table(ABLATION)
    assert [row[0] for row in table.rows] == ["no graph", "unit rows"]
    assert table.rows[0][1:] == ["-0.100 ± 0.000", "worse"]
    assert "they are better by these rows: decay 0.9." in table.note
    assert len(rejected_tables(())) == 1
    assert len(rejected_tables(ABLATION)) == 2
