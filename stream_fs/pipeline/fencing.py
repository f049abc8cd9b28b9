"""How often in a row something was taken from us that the group says is ours."""

from __future__ import annotations

from collections.abc import Callable

from stream_fs.errors import FencedError, NoOwnership

MOST_FENCES = 5
"""Times in a row; then another process publishes with the same group name."""
QUIET_SECONDS = 60.0
"""Without being fenced for so long, the count starts anew. Chunks in between do not make it: of two
processes that fence each other, each commits some before the other has its turn again."""


class FencingCounter:
    """Of one partition, or of the merge; `jitter` spreads those who take over again."""

    def __init__(self, jitter: Callable[[], float]) -> None:
        self._jitter = jitter
        self._times: list[float] = []
        self._last = 0.0

    def note(self, now: float, error: FencedError) -> bool:
        """Count one more; whether it is the last that is endured.

        An ownership that is given up, as in an outage, is nobody else's doing.
        """
        self._last = now
        if error.outcome_unknown:
            return False
        if self._times and now - self._times[-1] > QUIET_SECONDS:
            self._times.clear()
        self._times.append(now)
        return len(self._times) >= MOST_FENCES

    def again(self) -> float:
        """When to take over again."""
        return self._last + self._jitter() * 2.0 ** max(1, len(self._times))

    def refusal(self, what: str, error: FencedError) -> NoOwnership:
        """Why it is not taken over again."""
        return NoOwnership(
            f"{what} was taken over by another process {len(self._times)} times in a row, "
            "although the group has assigned it to this one: another process publishes with "
            "the same group name. Stop it, or give this stream another name and another group. "
            f"({error})"
        )
