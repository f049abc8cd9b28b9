from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_fs.selector import (
    View,
    params,
)
from stream_fs.selector.imputation import Imputation
from stream_fs.wire import (
    RankingFormat,
    Top,
    encode_ranking,
    largest_ranking,
    published_counts,
    ranking_message,
    ranking_payload,
)
from tests.support.rankings import PARAMS, ranking_history, sample_rankings


@pytest.mark.parametrize("top", [None, 2, 0.3])
@pytest.mark.parametrize("format", ["json", "msgpack"])
def test_no_ranking_is_larger_than_the_largest(top: Top, format: RankingFormat) -> None:
    counts = published_counts(PARAMS, top)
    largest = largest_ranking(PARAMS, counts, stream="s", topic="t.in", partitions=2, format=format)
    for published in sample_rankings(top):
        payload = ranking_payload(published, format)
        assert payload.value is not None
        assert payload.key is not None
        headers = sum(len(name) + len(text or b"") for name, text in payload.headers)
        assert len(payload.key) + len(payload.value) + headers < largest
        assert largest < 3 * len(payload.value) + 2000


@given(st.lists(st.text(max_size=8), min_size=6, max_size=6), st.integers(1, 6), st.data())
def test_the_largest_ranking_has_the_longest_names(
    names: list[str], count: int, data: st.DataObject
) -> None:
    with_names = params([View("v", 6, names=tuple(names))], clusters=2)
    order = data.draw(st.permutations(range(6)))
    ranking, report = ranking_history()[0]
    view = replace(
        ranking.views[0],
        name="v",
        order=np.array(order),
        scores=-np.full(6, 2.2250738585072014e-308),
        names=tuple(names),
    )
    published = ranking_message(
        replace(ranking, views=(view,)),
        replace(report, missing={"v": 0.5}, imputed={"v": Imputation(1 << 62, 1 / 3)}),
        stream="s",
        topic="t",
        partition=1 << 31,
        offsets=(1 << 62, 1 << 62),
        as_of=1 << 62,
        dead_letters=1 << 62,
        counts={"v": count},
        previous={"v": data.draw(st.permutations(range(6)))[:count]},
    )
    for format in ("json", "msgpack"):
        bound = largest_ranking(with_names, {"v": count}, stream="s", topic="t", format=format)
        assert len(encode_ranking(published, format)) + 512 < bound
