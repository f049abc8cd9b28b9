"""A row of the campaign's table passes only if something was compared or shown."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

import pytest

from tests.campaign.fault_result import AddArgument, FaultResult, results_of, table
from tests.support.recovery.comparison import Comparison

SAME = Comparison(compared=5, differing_bytes=0, lost=0, duplicated=0, misplaced=0)
OTHER = Comparison(compared=5, differing_bytes=2, lost=1, duplicated=0, misplaced=0)


@pytest.mark.parametrize(
    ("result", "passed"),
    [
        (FaultResult("kill", 3, SAME, SAME), True),
        (FaultResult("kill", 3, SAME), True),
        (FaultResult("flood", 1, shown="the breaker tripped"), True),
        (FaultResult("kill", 0, SAME, SAME), False),
        (FaultResult("kill", 3), False),
        (FaultResult("kill", 3, SAME, OTHER), False),
        (FaultResult("kill", 3, SAME, SAME, problems=("hung",)), False),
        (FaultResult("full disk", 1, SAME, not_run="no right to mount"), False),
    ],
)
def test_which_results_pass(result: FaultResult, passed: bool) -> None:
    assert result.passed is passed


def test_the_table_counts_both_outputs_and_lists_problems_below() -> None:
    lines = table([("kills", FaultResult("kill", 3, SAME, OTHER, problems=("it hung",)))])
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert cells == ["kills", "kill", "3", "5", "5", "2", "1", "0", "0", "", "1"]
    assert lines[3] == "kills, kill: it hung"


def test_a_fault_that_was_not_run_has_its_reason() -> None:
    lines = table([("processes", FaultResult("full disk", 0, not_run="no right to mount"))])
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert cells[2] == "0"
    assert cells[9] == "not run: no right to mount"


class Broken:
    """A part that raises an error."""

    def arguments(self, add: AddArgument, /) -> None:
        pass

    def run(self, _: Namespace, /) -> Iterator[FaultResult]:
        yield FaultResult("kill", 3, SAME)
        raise OSError("no room is left")


def test_a_part_that_raises_is_a_row_that_does_not_pass() -> None:
    first, last = results_of(Broken(), Namespace())
    assert first.passed
    assert not last.passed
    assert not last.not_run
    (problem,) = last.problems
    assert "no room is left" in problem


def test_counts_are_blank_where_nothing_is_compared() -> None:
    lines = table([("load", FaultResult("burst", 1, shown="peak 90 MB"))])
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert cells[3:9] == ["–"] * 6
