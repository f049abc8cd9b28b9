"""Upper bound of the size of a ranking, to check a configuration against the broker's limits."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

import msgpack
import orjson

from stream_fs.selector import Params, View
from stream_fs.selector.imputation import Imputation
from stream_fs.wire.rankings.codec import RankingFormat, ranking_payload
from stream_fs.wire.rankings.message import (
    Feature,
    Fit,
    RankedView,
    RankingMessage,
    RankingSource,
    RecordCounts,
    SelectionChange,
)

_LARGEST_COUNT: Final = (1 << 63) - 1
_LONGEST_NUMBER: Final = -sys.float_info.min
"""One of the floats with the longest text: -2.2250738585072014e-308."""
_OVERHEAD_BYTES: Final = 512
"""More than a broker adds to a message: lengths, timestamps, the header of its batch."""


def largest_ranking(
    params: Params,
    counts: Mapping[str, int],
    *,
    stream: str,
    topic: str,
    partitions: int = 0,
    format: RankingFormat = "json",
) -> int:
    """Upper bound of the bytes of a ranking with `counts` features by view, headers included.

    For a merged ranking, `partitions` is the number of its sources.
    """
    views = tuple(_view(view, counts[view.name], format) for view in params.views)
    message = RankingMessage(
        stream=stream,
        topic=topic,
        partition=_LARGEST_COUNT,
        preset=params.preset,
        score=params.score,
        model=params.fingerprint,
        sequence=_LARGEST_COUNT,
        offsets=(_LARGEST_COUNT, _LARGEST_COUNT),
        as_of=_LARGEST_COUNT,
        records=RecordCounts(
            _LARGEST_COUNT,
            _LARGEST_COUNT,
            _LARGEST_COUNT,
            missing=dict.fromkeys(counts, _LARGEST_COUNT),
            imputed=dict.fromkeys(counts, Imputation(_LARGEST_COUNT, _LONGEST_NUMBER)),
        ),
        views=views,
        selection={view.name: _change(view, counts[view.name]) for view in params.views},
        fit=Fit(_LARGEST_COUNT, False, _LONGEST_NUMBER, _LONGEST_NUMBER),
        sources=(RankingSource(topic, _LARGEST_COUNT, _LARGEST_COUNT),) * partitions,
    )
    payload = ranking_payload(message, format)
    headers = sum(len(name) + len(text or b"") for name, text in payload.headers)
    return len(payload.key or b"") + len(payload.value or b"") + headers + _OVERHEAD_BYTES


def _view(view: View, count: int, format: RankingFormat) -> RankedView:
    """The view with the features that take the most bytes."""
    encode = orjson.dumps if format == "json" else msgpack.packb
    features = [
        Feature(index, _LONGEST_NUMBER, None if view.names is None else view.names[index])
        for index in range(view.dimension)
    ]
    features.sort(key=lambda feature: len(encode([feature.index, feature.name])))
    return RankedView(view.name, _LONGEST_NUMBER, tuple(features[-count:]))


def _change(view: View, count: int) -> SelectionChange:
    """Every feature replaced; no index has more digits than the last."""
    all_last = (view.dimension - 1,) * count
    return SelectionChange(all_last, all_last, _LONGEST_NUMBER)
