"""A row of the campaign's table is right only when something was shown."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

import pytest

from tests.campaign.fault_result import Account, AddArgument, accounts_of, table
from tests.support.recovery.comparison import Comparison

SAME = Comparison(compared=5, differing_bytes=0, lost=0, duplicated=0, misplaced=0)
OTHER = Comparison(compared=5, differing_bytes=2, lost=1, duplicated=0, misplaced=0)


@pytest.mark.parametrize(
    ("account", "right"),
    [
        (Account("kill", 3, SAME, SAME), True),
        (Account("kill", 3, SAME), True),
        (Account("flood", 1, shown="the breaker tripped"), True),
        (Account("kill", 0, SAME, SAME), False),
        (Account("kill", 3), False),
        (Account("kill", 3, SAME, OTHER), False),
        (Account("kill", 3, SAME, SAME, problems=("hung",)), False),
        (Account("full disk", 1, SAME, not_run="no right to mount"), False),
    ],
)
def test_what_is_right(account: Account, right: bool) -> None:
    assert account.right is right


def test_the_table_counts_both_and_tells_problems_below() -> None:
    lines = table([("kills", Account("kill", 3, SAME, OTHER, problems=("it hung",)))])
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert cells == ["kills", "kill", "3", "5", "5", "2", "1", "0", "0", "", "1"]
    assert lines[3] == "kills, kill: it hung"


def test_what_was_not_run_says_why() -> None:
    lines = table([("processes", Account("full disk", 0, not_run="no right to mount"))])
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert cells[2] == "0"
    assert cells[9] == "not run: no right to mount"


class Broken:
    """A part that does not come to its end."""

    def arguments(self, add: AddArgument, /) -> None:
        pass

    def run(self, _: Namespace, /) -> Iterator[Account]:
        yield Account("kill", 3, SAME)
        raise OSError("no room is left")


def test_a_part_that_breaks_off_is_a_row_that_is_not_right() -> None:
    first, last = accounts_of(Broken(), Namespace())
    assert first.right
    assert not last.right
    assert not last.not_run
    (problem,) = last.problems
    assert "no room is left" in problem


def test_where_nothing_is_compared_there_are_no_zeros() -> None:
    lines = table([("load", Account("burst", 1, shown="peak 90 MB"))])
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert cells[3:9] == ["–"] * 6
