"""What was asked for in one assigned partition, and what has come of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FIRST_PAUSE: Final = 5.0
"""Seconds after which a partition that stays silent is asked for once more."""
LONGEST_PAUSE: Final = 160.0
"""Between reminders of the same partition, at most: each drops the answer that is on its way."""


@dataclass(slots=True)
class PartitionCursor:
    """An assigned partition, as the input knows it; offsets are None where there is none."""

    wanted: int | None = None
    """The next offset, while the partition is delivered."""
    waiting: int | None = None
    """To be asked for as soon as the client can."""
    placed: int | None = None
    """Asked for, but nothing was received yet."""
    _reminder: float = 0.0
    """When to ask for it once more."""
    _pause: float = FIRST_PAUSE
    """Seconds between the last two times."""
    delivered: float = 0.0
    """When something came."""
    told: int | None = None
    """Where the partition ends, as the broker says while it is silent."""
    reached: int | None = None
    """The last stable offset at which everything before it had been delivered; see `reach`."""
    _asked: tuple[int, int] | None = None
    """The offset and the end at which it was found to stand still."""
    _gap: tuple[int, int] | None = None
    """Where records seemed to be missing: the offset that was wanted, and the one that came."""
    _believed: int = 0
    """The largest gap that was really one."""

    @property
    def due(self) -> int | None:
        """The next offset, while the partition is delivered or to be delivered."""
        return self.waiting if self.wanted is None else self.wanted

    def asks_for(self, offset: int | None) -> bool:
        """Whether a fetch from this offset is one of what is wanted, and not an older one."""
        return self.wanted is not None and (offset is None or offset >= self.wanted)

    def place(self, offset: int, now: float) -> None:
        """Record a seek to this offset."""
        self.placed = offset
        self._reminder, self._pause = now + FIRST_PAUSE, FIRST_PAUSE

    def reach(self, offset: int) -> None:
        """The client reports the end of the partition: nothing before `offset` is left to deliver.

        Transaction markers and aborted records before it are never delivered.
        """
        if self.wanted is not None and offset >= self.wanted:
            self.reached = offset

    def unread(self, position: int) -> int | None:
        """Offsets between `position` and the last stable offset; None until the end is reached.

        Also None where more than that was delivered since: the end is not known then.
        """
        if self.reached is None or position > self.reached:
            return None
        return max(0, (self.told or 0) - self.reached)

    def remind(self, now: float) -> int | None:
        """The offset to ask for once more, less and less often; None where that is not due.

        A seek voids the answer that is on its way: where answers take long, none would ever come.
        """
        if self.placed is None or now <= self._reminder:
            return None
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self._reminder = now + self._pause
        return self.placed

    def rest(self) -> None:
        """Nothing is wanted any more."""
        self.wanted = self.waiting = self.placed = None

    def missing(self, offset: int, there: int) -> bool:
        """Whether records are missing before the first offset of a batch, and not known to be gone.

        A seek that the client forgets would skip records. So where the first message after `place`
        is not the one that was asked for, only the same answer to the same question is believed:
        those in between are then really gone.

        Later the first of every batch is looked at, unless the gap is no larger than one that was
        really one: markers of transactions and compaction leave such gaps everywhere, and to ask
        again costs what was fetched in advance. So it is done but a few times, for ever larger
        ones.
        """
        gap = there - offset
        if gap and (self.placed is not None or gap > self._believed):
            if self._gap != (offset, there):
                self._gap = (offset, there)
                return True
            self._believed = max(gap, self._believed)
        self.placed = None
        return False

    def stalled_offset(self, end: int) -> int | None:
        """The offset to ask for again, where there are records that do not come; else None.

        Behind the last record there may be a transaction's marker: it is asked for but once.
        """
        offset = self.wanted
        if offset is None or self.placed is not None or end <= offset:
            return None
        if self._asked == (offset, end):
            return None
        self._asked = (offset, end)
        return offset
