"""Rankings of a short stream, and the published examples."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from stream_fs.selector import (
    Ranking,
    Report,
    View,
    initial_state,
    params,
    rank,
    read_chunk,
    update,
)
from stream_fs.wire import (
    RankingMessage,
    RankingSource,
    Top,
    decode_ranking,
    merged_message,
    published_counts,
    ranking_message,
)

PARAMS = params(
    [View("plain", 30), View("named", 4, names=("a", 'quo"te', "ü" * 40, "d"))], clusters=2
)


@cache
def ranking_history() -> list[tuple[Ranking, Report]]:
    rng = np.random.default_rng(11)
    state, history = initial_state(PARAMS), []
    for _ in range(3):
        named = rng.random((60, 4))
        named[:7] = np.nan
        inputs = {"plain": rng.random((60, 30)), "named": named}
        state, report = update(state, read_chunk(PARAMS.views, inputs))
        history.append((rank(state), report))
    return history


def partition_ranking(
    number: int, previous: RankingMessage | None = None, top: Top = 3
) -> RankingMessage:
    ranking, report = ranking_history()[number]
    return ranking_message(
        ranking,
        report,
        stream="s",
        topic="t.in",
        partition=7,
        offsets=(61 * number, 61 * (number + 1)),
        as_of=1_700_000_000_000 + number,
        dead_letters=1,
        counts=published_counts(PARAMS, top),
        previous=None if previous is None else previous.chosen,
    )


def merged_ranking(top: Top = 3) -> RankingMessage:
    return merged_message(
        ranking_history()[2][0],
        stream="s",
        sequence=5,
        sources=[RankingSource("t.in", 7, 3), RankingSource("t.in", 8, 1)],
        as_of=1_700_000_000_000,
        dead_letters=4,
        counts=published_counts(PARAMS, top),
        previous=None,
    )


def sample_rankings(top: Top) -> list[RankingMessage]:
    first = partition_ranking(0, top=top)
    return [first, partition_ranking(1, first, top), merged_ranking(top)]


EXAMPLES = Path(__file__).parents[2] / "schemas/examples"


def example_ranking(name: str) -> RankingMessage:
    return decode_ranking((EXAMPLES / f"ranking.{name}.json").read_bytes())
