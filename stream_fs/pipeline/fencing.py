"""Decides whether a fenced owner acquires its transactional id again, and when."""

from __future__ import annotations

from collections.abc import Callable

from stream_fs.errors import FencedError, NoOwnership

MAX_FENCINGS = 5
"""Consecutive fencings; then another process publishes with the same group name."""
QUIET_SECONDS = 60.0
"""Without a fencing for this long, the count starts anew. Committed chunks do not reset it: two
processes that fence each other both commit some in turn."""


class FencingCounter:
    """Counts consecutive fencings of one owner: of a partition, or of the merge."""

    def __init__(self, name: str, jitter: Callable[[], float]) -> None:
        """`jitter` spreads the attempts of several processes."""
        self._name = name
        self._jitter = jitter
        self._times: list[float] = []
        self._retry_at: float | None = None

    @property
    def waiting(self) -> bool:
        """Whether a delay is in progress, after which to acquire again."""
        return self._retry_at is not None

    def note(self, now: float, error: FencedError) -> NoOwnership | None:
        """Count a fencing and begin a delay; the error to raise instead after too many.

        One that stands for an unknown outcome, as in an outage, has no other owner behind it and
        does not count.
        """
        if not error.outcome_unknown:
            if self._times and now - self._times[-1] > QUIET_SECONDS:
                self._times.clear()
            self._times.append(now)
            if len(self._times) >= MAX_FENCINGS:
                return self._ownership_error(error)
        self._retry_at = now + self._jitter() * 2.0 ** max(1, len(self._times))
        return None

    def retry_due(self, now: float) -> bool:
        """Whether the delay has ended; True only once."""
        if self._retry_at is None or now < self._retry_at:
            return False
        self._retry_at = None
        return True

    def _ownership_error(self, error: FencedError) -> NoOwnership:
        return NoOwnership(
            f"another process has acquired {self._name} {len(self._times)} times in a row, "
            "although the group has assigned it to this one: another process publishes with "
            "the same group name. Stop it, or give this stream another name and another group. "
            f"({error})"
        )
