"""A row of the campaign's table is right only when something was shown."""

from __future__ import annotations

import pytest

from tests.campaign.account import Account, table
from tests.recovery.comparison import Comparison

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
    ],
)
def test_what_is_right(account: Account, right: bool) -> None:
    assert account.right is right


def test_the_table_counts_both_and_tells_problems_below() -> None:
    lines = table([("kills", Account("kill", 3, SAME, OTHER, problems=("it hung",)))])
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert cells == ["kills", "kill", "3", "5", "5", "2", "1", "0", "0", "", "1"]
    assert lines[3] == "kills, kill: it hung"


def test_where_nothing_is_compared_there_are_no_zeros() -> None:
    lines = table([("load", Account("burst", 1, shown="peak 90 MB"))])
    cells = [cell.strip() for cell in lines[2].strip("|").split("|")]
    assert cells[3:9] == ["–"] * 6
