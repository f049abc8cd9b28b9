"""What was asked for in one assigned partition, and what has come of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

FIRST_PAUSE: Final = 5.0
"""Seconds after which a partition that stays silent is asked for once more."""
LONGEST_PAUSE: Final = 160.0
"""Between reminders of the same partition, at most: each drops the answer that is on its way."""


@dataclass(slots=True)
class Claim:
    """An assigned partition, as the input knows it; offsets are None where there is none.

    `doubtful`: the client may go back to the partition's end, see `KafkaInput._ends`.
    """

    doubtful: bool = False
    wanted: int | None = None
    """The next offset, while the partition is delivered."""
    waiting: int | None = None
    """To be asked for as soon as the client can."""
    placed: int | None = None
    """Asked for, but nothing was received yet."""
    _due: float = 0.0
    """When to ask for it once more."""
    _pause: float = FIRST_PAUSE
    """Seconds between the last two times."""
    delivered: float = 0.0
    """When something came."""
    told: int | None = None
    """Where the partition ends, as the broker says while it is silent."""
    reached: int | None = None
    """The last stable offset, when everything before it had been delivered; see `reach`."""
    _asked: tuple[int, int] | None = None
    """The offset and the end at which it was found to stand still."""
    _gap: tuple[int, int] | None = None
    """Where records seemed to be missing: the offset that was wanted, and the one that came."""
    _believed: int = 0
    """The largest gap that was really one."""

    def place(self, offset: int, now: float) -> None:
        """Something is asked for, from this offset on."""
        self.placed = offset
        self._due, self._pause = now + FIRST_PAUSE, FIRST_PAUSE

    def reach(self, offset: int) -> None:
        """The client reports the end of the partition: nothing before `offset` is left to deliver.

        Transaction markers and aborted records before it are never delivered. The client may skip
        records of a doubtful partition: what it reports there is not believed.
        """
        if self.wanted is not None and offset >= self.wanted and not self.doubtful:
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
        if self.placed is None or now <= self._due:
            return None
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self._due = now + self._pause
        return self.placed

    def rest(self) -> None:
        """Nothing is wanted any more."""
        self.wanted = self.waiting = self.placed = None

    def missing(self, offset: int, found: Sequence[int]) -> tuple[int, int] | None:
        """Where records are missing in a batch that begins at this offset, if they are.

        The position in the batch, and the offset to ask for again.

        A seek that the client forgets would skip records, see `KafkaInput._ends`. So where the
        first message after `place` is not the one that was asked for, only the same answer to the
        same question is believed: those in between are then really gone. In a doubtful partition
        any message.

        In the others the first of every batch, unless the gap is no larger than one that was really
        one: markers of transactions and compaction leave such gaps everywhere, and to ask again
        costs what was fetched in advance. So it is done but a few times, for ever larger ones.
        """
        strict = self.doubtful or self.placed is not None
        for position, there in enumerate(found if self.doubtful else found[:1]):
            gap = there - offset
            if gap and (strict or gap > self._believed):
                if self._gap != (offset, there):
                    self._gap = (offset, there)
                    return position, offset
                self._believed = max(gap, self._believed)
            offset = there + 1
        self.placed = None
        return None

    def stands_still(self, end: int) -> int | None:
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
