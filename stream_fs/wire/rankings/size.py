"""How large a ranking can become, so that a configuration can be checked against the broker."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

import msgpack
import orjson

from stream_fs.selector import Params, View
from stream_fs.selector.imputation import Imputation
from stream_fs.wire.rankings.codec import RankingFormat, publish
from stream_fs.wire.rankings.message import (
    Feature,
    Fit,
    RankedView,
    RankingMessage,
    Records,
    SelectionChange,
    Source,
)

_COUNT: Final = (1 << 63) - 1
_NUMBER: Final = -sys.float_info.min
"""Among the floats with the longest text: -2.2250738585072014e-308."""
_ENVELOPE: Final = 512
"""More than what a broker adds to a message: lengths, timestamps, the head of its batch."""


def largest_ranking(
    params: Params,
    counts: Mapping[str, int],
    *,
    stream: str,
    topic: str,
    partitions: int = 0,
    format: RankingFormat = "json",
) -> int:
    """Bytes that a ranking with so many features of each view never exceeds, headers and all.

    For a merged ranking, `partitions` is how many it may list.
    """
    views = tuple(_view(view, counts[view.name], format) for view in params.views)
    message = RankingMessage(
        stream=stream,
        topic=topic,
        partition=_COUNT,
        preset=params.preset,
        score=params.score,
        model=params.fingerprint,
        sequence=_COUNT,
        offsets=(_COUNT, _COUNT),
        as_of=_COUNT,
        records=Records(
            _COUNT,
            _COUNT,
            _COUNT,
            missing=dict.fromkeys(counts, _COUNT),
            imputed=dict.fromkeys(counts, Imputation(_COUNT, _NUMBER)),
        ),
        views=views,
        selection={view.name: _change(view, counts[view.name]) for view in params.views},
        fit=Fit(_COUNT, False, _NUMBER, _NUMBER),
        sources=(Source(topic, _COUNT, _COUNT),) * partitions,
    )
    sent = publish(message, format)
    headers = sum(len(name) + len(text or b"") for name, text in sent.headers)
    return len(sent.key or b"") + len(sent.value or b"") + headers + _ENVELOPE


def _view(view: View, count: int, format: RankingFormat) -> RankedView:
    """The features that take the most bytes."""
    encode = orjson.dumps if format == "json" else msgpack.packb
    features = [
        Feature(index, _NUMBER, None if view.names is None else view.names[index])
        for index in range(view.dimension)
    ]
    features.sort(key=lambda feature: len(encode([feature.index, feature.name])))
    return RankedView(view.name, _NUMBER, tuple(features[-count:]))


def _change(view: View, count: int) -> SelectionChange:
    """As if every feature had been replaced; no index is longer than the last."""
    all_last = (view.dimension - 1,) * count
    return SelectionChange(all_last, all_last, _NUMBER)
