"""A ranking that could not be published is told of beforehand, with what to change."""

from __future__ import annotations

import re
from pathlib import Path

from stream_fs.service.configuration.sizes import ranking_bytes, ranking_problem
from tests.unit.service.configuring import LEAST, loaded, problems

WIDE = LEAST.replace("dimension = 6", "dimension = 30000")


def told(folder: Path, text: str) -> str:
    (problem,) = problems(folder, text)
    return problem


def test_a_ranking_that_does_not_fit_names_every_way_out(tmp_path: Path) -> None:
    problem = told(tmp_path, WIDE)
    found = re.fullmatch(
        r"output\.top: a ranking may have (\d+) bytes, more than kafka\.largest_message "
        r"\(1000000\): raise kafka\.largest_message to (\d+) \(and max\.message\.bytes of the "
        r"topic\), or set output\.top to (\d+) or less(, or set output\.format to \"msgpack\")?",
        problem,
    )
    assert found, problem
    size, larger, top, _ = found.groups()
    assert size == larger

    loaded(tmp_path, f"{WIDE}largest_message = {larger}\n")
    told(tmp_path, f"{WIDE}largest_message = {int(larger) - 1}\n")
    loaded(tmp_path, f"{WIDE}[output]\ntop = {top}\n")
    told(tmp_path, f"{WIDE}[output]\ntop = {int(top) + 1}\n")


def test_the_shorter_format_is_named_where_it_is_enough(tmp_path: Path) -> None:
    wide = LEAST.replace("dimension = 6", "dimension = 2000")
    configuration = loaded(tmp_path, wide)
    json, packed = (ranking_bytes(configuration, None, format) for format in ("json", "msgpack"))
    assert packed < json
    assert 'output.format to "msgpack"' in told(
        tmp_path, f"{wide}largest_message = {json - 1}\n" + "[limits]\nrecord_bytes = 1\n"
    )
    short = f"{wide}largest_message = {packed}\n[limits]\nrecord_bytes = 1\n[output]\n"
    loaded(tmp_path, short + 'format = "msgpack"\n')


def test_no_count_is_named_where_none_fits(tmp_path: Path) -> None:
    tiny = f"{LEAST}largest_message = 10\n[limits]\nrecord_bytes = 1\n"
    assert "output.top to" not in told(tmp_path, tiny)


def test_a_merged_ranking_lists_its_partitions(tmp_path: Path) -> None:
    configuration = loaded(tmp_path)
    alone = ranking_bytes(configuration, None, "json")
    limited = loaded(tmp_path, f"{LEAST}largest_message = {alone}\n[limits]\nrecord_bytes = 1\n")
    assert ranking_problem(limited) is None
    assert ranking_problem(limited, partitions=50) is not None
