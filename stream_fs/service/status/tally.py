"""How many of something there were lately."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts in slots of `width` seconds, of which the last `slots` are kept. Never modified."""

    width: float
    slots: int
    counts: tuple[tuple[int, int], ...] = ()
    """Number of the slot and count, in the order of time."""

    def add(self, now: float, count: int) -> Tally:
        """With so many more, now."""
        slot = int(now // self.width)
        kept = [(at, number) for at, number in self.counts if slot - self.slots < at <= slot]
        if kept and kept[-1][0] == slot:
            count += kept.pop()[1]
        return Tally(self.width, self.slots, (*kept, (slot, count)))

    def recent(self, now: float) -> int:
        """How many in the last `slots` slots, the one that has begun included."""
        slot = int(now // self.width)
        return sum(count for at, count in self.counts if slot - self.slots < at <= slot)
