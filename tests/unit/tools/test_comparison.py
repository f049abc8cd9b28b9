"""The comparison counts different, lost, duplicated and misplaced messages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.recovery.comparison import Comparison, compare, letter_name, ranking_name
from tests.support.recovery.subscriber import Received


def ranking(sequence: int, more: bytes = b"") -> Received:
    headers = (("ce_id", b"%d" % sequence), ("nothing", None))
    return Received(b"key", b'{"sequence": %d}%s' % (sequence, more), headers)


EXPECTED = [ranking(number) for number in range(1, 6)]
SAME = Comparison(compared=5, differing_bytes=0, lost=0, duplicated=0, misplaced=0)


def against(*found: Received) -> Comparison:
    return compare(EXPECTED, found, ranking_name)


def test_equal_messages_compare_equal() -> None:
    assert against(*EXPECTED) == SAME
    assert SAME.same


def test_an_empty_comparison_is_not_the_same() -> None:
    assert not compare([], [], ranking_name).same


def test_every_difference_is_counted() -> None:
    one, two, three, four, five = EXPECTED
    found = {
        "lost": against(one, two, four, five),
        "duplicated": against(one, two, two, three, four, five),
        "misplaced": against(one, three, two, four, five),
        "surplus": against(*EXPECTED, ranking(6)),
        "value": against(one, two, three, four, ranking(5, b"  ")),
        "key": against(one, two, three, four, five._replace(key=b"kez")),
        "header": against(one, two, three, four, five._replace(headers=five.headers[:1])),
    }
    assert found == {
        "lost": replace(SAME, compared=4, lost=1),
        "duplicated": replace(SAME, duplicated=1),
        "misplaced": replace(SAME, misplaced=1),
        "surplus": replace(SAME, duplicated=1),
        "value": replace(SAME, differing_bytes=2),
        "key": replace(SAME, differing_bytes=1),
        "header": replace(SAME, differing_bytes=1),
    }
    assert not any(difference.same for difference in found.values())


def test_a_missing_value_differs_from_an_empty_one() -> None:
    letters = [Received(None, value, (("stream-fs-offset", b"3"),)) for value in (None, b"")]
    assert not compare(letters[:1], letters[1:], letter_name).same


@pytest.mark.parametrize("name", ["differing_bytes", "lost", "duplicated", "misplaced"])
def test_the_sum_of_comparisons_keeps_every_difference(name: str) -> None:
    wrong = replace(SAME, **{name: 1})
    assert not (SAME + wrong + SAME).same
    assert (SAME + wrong).compared == 10
