from dataclasses import replace
from pathlib import Path

import pytest

from stream_fs.evaluate.errors import DataMalformed
from stream_fs.evaluate.plan import Measurement
from stream_fs.evaluate.store import ROWS, ResultStore

FIRST = Measurement("ranking", "digits", {"repetition": 0, "method": "variance"}, "0.1.0 1 abc")
SECOND = replace(FIRST, settings={"repetition": 1, "method": "variance"})


def test_rows_remain_after_a_restart_and_have_their_settings(tmp_path: Path) -> None:
    ResultStore(tmp_path / "new").add(FIRST, [{"nmi": 0.25}, {"nmi": 0.5}])
    again = ResultStore(tmp_path / "new")
    assert FIRST in again
    assert SECOND not in again
    place = {"dataset": "digits", "repetition": 0, "method": "variance"}
    assert again.rows([FIRST, SECOND], "ranking") == [place | {"nmi": 0.25}, place | {"nmi": 0.5}]
    assert again.rows([FIRST], "grid") == []


def test_a_line_that_was_cut_off_is_measured_again(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    store.add(FIRST, [{"nmi": 0.25}])
    store.add(SECOND, [{"nmi": 0.5}])
    path = tmp_path / ROWS
    path.write_bytes(path.read_bytes()[:-5])
    resumed = ResultStore(tmp_path)
    assert FIRST in resumed
    assert SECOND not in resumed
    resumed.add(SECOND, [{"nmi": 0.5}])
    assert ResultStore(tmp_path).rows([FIRST, SECOND], "ranking") == store.rows(
        [FIRST, SECOND], "ranking"
    )


@pytest.mark.parametrize("line", ["nonsense", '{"rows": []}', "[1]"])
def test_a_foreign_line_is_an_error_with_its_place(tmp_path: Path, line: str) -> None:
    ResultStore(tmp_path).add(FIRST, [])
    with (tmp_path / ROWS).open("a") as file:
        file.write(line + "\n")
    with pytest.raises(DataMalformed, match=r"rows\.jsonl, line 2 is not a result"):
        ResultStore(tmp_path)


def test_rows_of_another_version_are_not_reused(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    store.add(FIRST, [{"nmi": 0.25}])
    for other in (
        replace(FIRST, provenance="0.2.0 1 abc"),
        replace(FIRST, settings={**FIRST.settings, "missing": 0.3}),
        replace(FIRST, dataset="topics"),
        replace(FIRST, experiment="grid"),
    ):
        assert other not in store


def test_csv_has_the_union_of_the_columns(tmp_path: Path) -> None:
    store = ResultStore(tmp_path)
    store.add(FIRST, [{"nmi": 0.25}])
    store.add(SECOND, [{"f": 1.0}])
    path = store.write_csv([FIRST, SECOND], "ranking")
    assert path is not None
    assert path.read_text().splitlines() == [
        "dataset,repetition,method,nmi,f",
        "digits,0,variance,0.25,",
        "digits,1,variance,,1.0",
    ]
    assert store.write_csv([FIRST], "grid") is None
