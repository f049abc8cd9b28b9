"""Whether a subscriber has seen every ranking, once: what `sequence` and `offsets` prove."""

from __future__ import annotations

from stream_fs.wire.rankings import RankingMessage


class Continuity:
    """Follows the rankings of every key; the first one of each may be any."""

    def __init__(self) -> None:
        self._last: dict[str, RankingMessage] = {}

    def follow(self, ranking: RankingMessage) -> str | None:
        """What is wrong between the ranking before and this one; None when it follows directly."""
        last = self._last.get(ranking.key)
        self._last[ranking.key] = ranking
        return None if last is None else _break(last, ranking)


def _break(last: RankingMessage, now: RankingMessage) -> str | None:
    missing = now.sequence - last.sequence - 1
    if missing > 0:
        return (
            f"{now.key}: {missing} rankings between {last.sequence} and {now.sequence} are missing"
        )
    if missing < 0 and now.sequence == 1:
        return f"{now.key}: the sequence begins anew after {last.sequence}"
    if missing < 0:
        return f"{now.key}: ranking {now.sequence} comes after {last.sequence}"
    if last.offsets is None or now.offsets is None or last.offsets[1] == now.offsets[0]:
        return None
    return (
        f"{now.key}: ranking {now.sequence} begins at offset {now.offsets[0]}, and the one before "
        f"it ended at {last.offsets[1]}"
    )
