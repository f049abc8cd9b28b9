import pytest

from stream_fs.evaluate.experiments import drift
from stream_fs.evaluate.plan import (
    Row,
)
from tests.support.experiments import measured, planned


def course(*leads: bool) -> list[Row]:
    """Rows of a stream whose new features lead or not, chunk by chunk."""
    return [
        {"chunk": i, "old": 0.2 if lead else 0.8, "new": 0.8 if lead else 0.2}
        for i, lead in enumerate(leads, 1)
    ]


@pytest.mark.parametrize(
    ("leads", "expected"),
    [
        ([False] * 4 + [True] * 4, 1),
        ([False] * 6 + [True] * 2, 3),
        ([False] * 4 + [True, False, True, True], 3),  # a lead that is lost again does not count
        ([False] * 8, float("inf")),
    ],
)
def test_chunks_until_the_new_features_lead_for_good(leads: list[bool], expected: float) -> None:
    assert drift.chunks_until_lead(course(*leads)) == expected


def test_half_way_other_features_become_informative() -> None:
    for changes in (True, False):
        feed_chunks = drift.make_stream(0, 20, drift=changes)
        x = feed_chunks.data.views[0]
        late = x[len(x) // 2 :].var(axis=0)
        first, second = late[:8].mean(), late[8:16].mean()
        assert (second > first + 0.01) == changes
        assert (first > second + 0.01) == (not changes)


def test_with_decay_the_new_features_come_to_lead() -> None:
    settings = planned("drift", decay=0.8, drift="yes")
    rows = measured("drift", settings)
    assert len(rows) == drift.CHUNKS
    assert 1 <= drift.chunks_until_lead(rows) <= 25
