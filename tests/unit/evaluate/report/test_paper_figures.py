from pathlib import Path

import pytest

from stream_fs.evaluate.errors import DataMalformed
from stream_fs.evaluate.plan import Options, Row
from stream_fs.evaluate.report.paper_figures import (
    TABLES,
    best_of_grid,
    paper_tables,
    read_paper_figures,
)
from stream_fs.evaluate.report.results import (
    Completion,
    PairedResults,
    Results,
)
from tests.support.report_rows import (
    ENTRIES,
    SETS,
    SHARES,
    ranking_rows,
)


def test_the_best_setting_is_chosen_by_its_mean() -> None:
    rows: list[Row] = [
        {"dataset": "a", "share": 0.1, "parameter": p, "value": 1.0, "nmi": nmi}
        for p, nmi in [("beta", 0.9), ("beta", 0.1), ("eta", 0.6), ("eta", 0.6)]
    ]
    assert best_of_grid(rows, "nmi") == {("a", "0.1"): pytest.approx(0.6)}


def test_the_papers_figures_are_shown_and_recomputed_sets_are_marked(
    tmp_path: Path,
) -> None:
    assert read_paper_figures(tmp_path) == {}
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
    rows = ranking_rows()
    results = Results(
        {"ranking": rows, "grid": grid},
        ENTRIES,
        Options(),
        Completion(1, 1),
        paper=read_paper_figures(tmp_path),
    )
    tables = paper_tables(results, PairedResults(rows))
    by_name = {row[0]: row for row in tables[1].rows}
    assert by_name["3Sources"][1:5] == ["0.750", "0.400", "0.510", "0.510"]
    assert by_name["USPS †"][1] == "–"


def test_a_file_that_is_not_the_papers_tables_is_an_error(tmp_path: Path) -> None:
    (tmp_path / TABLES).write_text("a,b\n1,2\n")
    with pytest.raises(DataMalformed, match="needs the columns metric"):
        read_paper_figures(tmp_path)
