"""A ranking that is too large to be published is reported by the configuration, with remedies."""

from __future__ import annotations

import re
from pathlib import Path

from stream_fs.pipeline.model import Model, snapshot_records
from stream_fs.pipeline.ports import Partition
from stream_fs.selector import initial_state
from stream_fs.service.configuration.configuration import ranking_bytes, ranking_problem
from tests.support.configurations import LEAST, loaded, problems

WIDE = LEAST.replace("dimension = 6", "dimension = 30000")


def reported(folder: Path, text: str) -> str:
    (problem,) = problems(folder, text)
    return problem


def test_a_ranking_that_does_not_fit_names_every_way_out(tmp_path: Path) -> None:
    problem = reported(tmp_path, WIDE)
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
    reported(tmp_path, f"{WIDE}largest_message = {int(larger) - 1}\n")
    loaded(tmp_path, f"{WIDE}[output]\ntop = {top}\n")
    reported(tmp_path, f"{WIDE}[output]\ntop = {int(top) + 1}\n")


def test_the_shorter_format_is_named_where_it_is_enough(tmp_path: Path) -> None:
    wide = LEAST.replace("dimension = 6", "dimension = 2000")
    configuration = loaded(tmp_path, wide)
    json, packed = (ranking_bytes(configuration, None, format) for format in ("json", "msgpack"))
    assert packed < json
    assert 'output.format to "msgpack"' in reported(
        tmp_path, f"{wide}largest_message = {json - 1}\n" + "[limits]\nrecord_bytes = 1\n"
    )
    short = f"{wide}largest_message = {packed}\n[limits]\nrecord_bytes = 1\n[output]\n"
    loaded(tmp_path, short + 'format = "msgpack"\n')


def test_no_count_is_named_where_none_fits(tmp_path: Path) -> None:
    tiny = f"{LEAST}largest_message = 10\n[limits]\nrecord_bytes = 1\n"
    ranking, state = problems(tmp_path, tiny)
    assert "output.top to" not in ranking
    assert state.startswith("kafka.largest_message: should be at least ")


def test_a_merged_ranking_lists_its_partitions(tmp_path: Path) -> None:
    configuration = loaded(tmp_path)
    alone = ranking_bytes(configuration, None, "json")
    limited = loaded(tmp_path, f"{LEAST}largest_message = {alone}\n[limits]\nrecord_bytes = 1\n")
    assert ranking_problem(limited) is None
    assert ranking_problem(limited, partitions=50) is not None


def test_a_message_too_small_for_the_state_is_told_with_the_size_that_is_needed(
    tmp_path: Path,
) -> None:
    many = "".join(f'[[views]]\nname = "v{n}"\ndimension = 1\n' for n in range(40))
    text = f"{LEAST}largest_message = %d\n[limits]\nrecord_bytes = 1\n{many}[output]\ntop = 1\n"
    text += 'format = "msgpack"\n'
    problem = next(line for line in problems(tmp_path, text % 2000) if "largest_message:" in line)
    found = re.fullmatch(
        r"kafka\.largest_message: should be at least (\d+), which the manifest of a snapshot may "
        r"have, got 2000",
        problem,
    )
    assert found, problem
    needed = int(found[1])
    assert any("manifest" in line for line in problems(tmp_path, text % (needed - 1)))
    settings = loaded(tmp_path, text % needed).stream_settings()
    place = Partition("digits", 0)
    state = initial_state(settings.params, settings.origin(place))
    model = Model(state, 0, None, settings.chunk_policy)
    records, _ = snapshot_records(settings, place, model, 0)
    assert needed - 60 < max(len(record.value or b"") for record in records) <= needed


def test_a_state_that_fits_into_no_message(tmp_path: Path) -> None:
    wide = LEAST.replace("dimension = 6", "dimension = 8000000")
    text = f"{wide}largest_message = 5000000\n[output]\ntop = 1\n[merge]\nenabled = %s\n"
    assert "declare fewer views or features" in reported(tmp_path, text % "true")
    loaded(tmp_path, text % "false")
