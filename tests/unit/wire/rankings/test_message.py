from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest

from stream_fs.errors import InvalidMessage, InvalidParameter
from stream_fs.wire import (
    encode_ranking,
    published_counts,
    ranking_message,
)
from stream_fs.wire.rankings.message import leading, leading_count, leading_overlap
from tests.support.rankings import PARAMS, partition_ranking, ranking_history


def test_fields_of_a_ranking() -> None:
    ranking, report = ranking_history()[1]
    plain = orjson.loads(encode_ranking(partition_ranking(1, partition_ranking(0))))
    assert plain["sequence"] == 2
    assert plain["offsets"] == {"from": 61, "next": 122}
    assert plain["model"] == PARAMS.fingerprint
    assert plain["records"] == {
        "chunk": 60,
        "total": 120,
        "dead_letters": 1,
        "missing": {"plain": 0, "named": 7},
        "imputed": {
            "plain": {"rows": 0, "weight": 1.0},
            "named": {"rows": 7, "weight": pytest.approx(106 / 120)},
        },
    }
    assert plain["fit"]["objective"] == report.objective[-1]
    assert plain["fit"]["orthogonality"] == max(report.orthogonality.values())
    for view, published in zip(ranking.views, plain["views"], strict=True):
        assert published["weight"] == view.alpha
        assert [f["index"] for f in published["features"]] == view.order[:3].tolist()
        assert [f["relevance"] for f in published["features"]] == view.scores[
            view.order[:3]
        ].tolist()
        assert [f.get("name", f["index"]) for f in published["features"]] == view.top(3)


def test_the_selection_is_compared_with_the_previous_ranking() -> None:
    first = partition_ranking(0)
    assert first.selection is None
    best = partition_ranking(1).chosen
    before = {"plain": [*best["plain"][:2], 99], "named": list(best["named"])}
    ranking, report = ranking_history()[1]
    message = ranking_message(
        ranking,
        report,
        stream="s",
        topic="t",
        partition=0,
        offsets=(0, 1),
        as_of=0,
        dead_letters=0,
        counts=published_counts(PARAMS, 3),
        previous=before,
    )
    assert message.selection is not None
    change = message.selection["plain"]
    assert (change.entered, change.left) == ((best["plain"][2],), (99,))
    assert change.overlap == pytest.approx(2 / 3)
    assert message.selection["named"].overlap == 1.0
    assert message.selection["named"].entered == ()


@pytest.mark.parametrize(
    ("published", "dimension", "count"),
    [(1, 1, 1), (1, 2, 1), (2, 2, 1), (5, 10, 5), (6, 10, 5), (20, 40, 20), (21, 40, 10)],
)
def test_leading_features_are_at_most_half_of_a_view(
    published: int, dimension: int, count: int
) -> None:
    assert leading_count(published, dimension) == count


def test_leading_features_show_changes_that_all_published_features_hide() -> None:
    now = {"plain": list(range(30)), "named": [0, 1, 2, 3]}
    before = {"plain": list(range(7, 30)) + list(range(7)), "named": [3, 2, 1, 0]}
    assert leading(now, PARAMS) == {"plain": frozenset(range(10)), "named": {0, 1}}
    overlap = leading_overlap(leading(now, PARAMS), leading(before, PARAMS))
    assert overlap == {"plain": 0.3, "named": 0.0}
    assert leading_overlap(leading(now, PARAMS), None) == {}


def test_leading_features_are_known_without_an_order_where_all_published_ones_lead() -> None:
    chosen = {"plain": [3, 7, 9], "named": [0, 2, 3]}
    assert leading(chosen, PARAMS, ordered=False) == {"plain": {3, 7, 9}}


def test_counts() -> None:
    assert published_counts(PARAMS, None) == {"plain": 30, "named": 4}
    assert published_counts(PARAMS, 10) == {"plain": 10, "named": 4}
    assert sum(published_counts(PARAMS, 0.5).values()) == 17
    wrong: list[Any] = [0, -1, 0.0, 1.5, True, "all"]
    for top in wrong:
        with pytest.raises(InvalidParameter):
            published_counts(PARAMS, top)


def test_numbers_are_finite() -> None:
    ranking, report = ranking_history()[0]
    arguments: dict[str, Any] = {
        "stream": "s",
        "topic": "t",
        "partition": 0,
        "offsets": (0, 1),
        "as_of": 0,
        "dead_letters": 0,
        "counts": published_counts(PARAMS, 3),
        "previous": None,
    }
    view = replace(ranking.views[0], scores=np.full(30, np.nan))
    for broken_ranking, broken_report in (
        (replace(ranking, views=(view, ranking.views[1])), report),
        (ranking, replace(report, objective=(1.0, float("inf")))),
    ):
        with pytest.raises(InvalidMessage, match="finite"):
            ranking_message(broken_ranking, broken_report, **arguments)
