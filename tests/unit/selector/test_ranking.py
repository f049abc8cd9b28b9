"""The division of a budget of features between views."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_fs.errors import InvalidParameter
from stream_fs.selector.ranking import split_budget
from tests.reference.explicit import budget


@pytest.mark.parametrize(
    ("dimensions", "share", "expected"),
    [
        ([100, 400], 0.3, [50, 100]),  # √100 : √400 = 1 : 2 of 150
        ([4, 36], 0.25, [2, 8]),  # 1 + 9 = 10, 1 : 3 would be 2.5 : 7.5; the tie to the larger
        ([4, 400], 0.5, [4, 198]),  # the small one is full, the rest flows on
        ([1, 1, 10_000], 0.001, [1, 1, 8]),  # 0 + 0 + 10, none below one
        ([1000, 4], 0.1, [96, 4]),  # 100 + 0, although the small view is full
        ([9, 9], 0.5, [5, 5]),  # halves are rounded up: 5 + 5
        ([16, 9, 9], 0.5, [7, 6, 5]),  # 18 by 4 : 3 : 3 = 7.2, 5.4, 5.4; of equals the first
        ([2, 2, 2], 0.01, [1, 1, 1]),
        ([7], 0.5, [4]),
        ([5, 50, 500], 1.0, [5, 50, 500]),
    ],
)
def test_a_share_is_divided_by_the_square_root(
    dimensions: list[int], share: float, expected: list[int]
) -> None:
    assert split_budget(dimensions, share, "sqrt") == expected


def test_a_proportional_share_is_each_views_own() -> None:
    assert split_budget([100, 400, 1], 0.3, "proportional") == [30, 120, 1]
    assert split_budget([5, 3], 0.5, "proportional") == [3, 2]


@given(
    dimensions=st.lists(st.integers(1, 5000), min_size=1, max_size=8),
    share=st.floats(0, 1, exclude_min=True),
)
def test_the_budget_adds_up_and_fits(dimensions: list[int], share: float) -> None:
    counts = split_budget(dimensions, share, "sqrt")
    assert counts == budget(dimensions, share)
    assert all(1 <= count <= d for count, d in zip(counts, dimensions, strict=True))
    # n_v/√d_v is level, up to rounding, among views that are neither full nor at one.
    level = [
        (count, np.sqrt(d)) for count, d in zip(counts, dimensions, strict=True) if 1 < count < d
    ]
    for count, root in level:
        for other, other_root in level:
            assert (count - 1) / root <= (other + 1) / other_root + 1e-6


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, float("nan")])
def test_a_share_out_of_range_is_refused(share: float) -> None:
    with pytest.raises(InvalidParameter, match="share of features"):
        split_budget([3, 4], share, "sqrt")
