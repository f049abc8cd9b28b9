"""When a process is killed: at a step of a commit, or in a moment that chance decides."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from typing import NamedTuple

from stream_fs.service.exit_codes import ExitCode
from tests.support.processes import wait_until
from tests.support.recovery.content import SNAPSHOT_EVERY, has_snapshot
from tests.support.recovery.faulty_service import STEPS, Moment
from tests.support.recovery.service_process import Life
from tests.support.recovery.stream_run import Journey

ALONE = ("--set", "output.linger_seconds=0")
"""Every chunk in a transaction of its own, so that its steps can be counted."""


class Point(NamedTuple):
    """Between a step and the next one, in a commit with or without a snapshot."""

    step: str
    snapshot: bool

    def __str__(self) -> str:
        return f"{self.step}, {'with' if self.snapshot else 'without'} snapshot"

    @property
    def commits(self) -> bool:
        """Whether the chunk is out by then."""
        return STEPS.index(self.step) >= STEPS.index("committed")

    def chunk_after(self, committed: int) -> int:
        """The next chunk of this kind, which is not the first: that one has a shape of its own."""
        chunk = max(committed, 1) + 1
        while has_snapshot(chunk) != self.snapshot:
            chunk += 1
        return chunk

    def moment(self, chunk: int, committed: int) -> Moment:
        """When a process passes here with this chunk that starts with so many committed ones."""
        ahead = range(committed + 1, chunk + 1)
        if self.step == "updated":  # also of what is folded in again since the last snapshot
            restored = (committed - 1) // SNAPSHOT_EVERY * SNAPSHOT_EVERY + 1 if committed else 0
            return Moment(self.step, chunk - restored)
        if self.step == "snapshot sent":
            return Moment(self.step, sum(map(has_snapshot, ahead)))
        return Moment(self.step, len(ahead))


POINTS = tuple(
    Point(step, snapshot)
    for step in STEPS
    for snapshot in (True, False)
    if snapshot or step != "snapshot sent"
)


def kill_at(journey: Journey, point: Point, committed: int) -> int:
    """One life that ends at this point; returns how many chunks are committed then."""
    chunk = point.chunk_after(committed)
    journey.start(point.moment(chunk, committed), more=ALONE).expect(-signal.SIGKILL)
    committed = chunk if point.commits else chunk - 1
    journey.settled(committed)
    return committed


def kill_together(journey: Journey, step: str, transactions: int) -> None:
    """One life that ends at this step of so many transactions, each of as many chunks as it may."""
    journey.start(Moment(step, transactions)).expect(-signal.SIGKILL)


def shared(life: Life) -> int:
    """Chunks that a process has published in a transaction together with those behind them."""
    return sum("seconds" not in line for line in life.log("chunk committed"))


def kill_randomly(journey: Journey, kills: int, chance: random.Random) -> None:
    """So many lives, each killed from outside: most of them at work, some while they start.

    They share the stream, so that there is something to do to the end.
    """
    for share in _shares(journey, kills, chance):
        life = journey.start()
        if share:
            journey.reach(life, journey.published() + share)
            time.sleep(chance.uniform(0, 0.05))
        else:
            time.sleep(chance.uniform(0, 3))
        assert not life.ended, life.wrong("has ended by itself")
        life.kill()


def _shares(journey: Journey, kills: int, chance: random.Random) -> Iterator[int]:
    """Chunks that each life may commit before it is killed; every fifth one none."""
    for done in range(kills):
        left = journey.content.chunks - journey.published()
        fair = left // (kills - done + 1)
        yield 0 if done % 5 == 4 else min(left, chance.randint(1, max(1, 2 * fair - 5)))


def end_randomly(journey: Journey, times: int, chance: random.Random) -> None:
    """So many lives that are asked to end, and killed while they do so."""
    for share in _shares(journey, times, chance):
        life = journey.start()
        journey.reach(life, journey.published() + share)
        life.until_running()
        life.signal(signal.SIGTERM)
        time.sleep(chance.uniform(0, 0.1))
        life.kill()


def overtake(journey: Journey) -> None:
    """A life stands still before a commit, and goes on when another process has its place."""
    committed = len(journey.rankings.everything())
    late = journey.start(Moment("records sent", 3), sent="STOP", more=ALONE)
    late.until(lambda: late.standing, "standing still")
    journey.settled(committed + 2)
    other = journey.start()
    journey.reach(other, committed + 5)
    late.signal(signal.SIGCONT)
    # Both have one name in the group: it may hear first that it has lost that.
    wait_until(
        lambda: bool(late.log("taken over by another owner")) or late.ended,
        "the late one hears of it",
    )
    if late.ended:
        late.expect(ExitCode.BROKER)
        assert late.said("group.instance.id"), late.wrong("does not say why it ended")
    late.kill()
    other.stop()


def stop_often(journey: Journey, times: int, chunks: int) -> None:
    """So many lives that are asked to end when each has published so many chunks.

    With a number of chunks that is no multiple of those between snapshots, each end writes one out
    of turn; checks that it does, and that the next life has nothing to fold in again.
    """
    for committed in range(0, times * chunks, chunks):
        life = journey.start(Moment("advised", chunks), sent="TERM", more=ALONE)
        life.expect(0)
        journey.settled(committed + chunks)
        saved = [line["chunk"] for line in life.log("snapshot committed")]
        assert saved == [committed + chunks], life.wrong(f"has saved {saved} at its end")
        if committed:
            nothing_to_replay(life, committed)


def nothing_to_replay(life: Life, chunk: int) -> None:
    """Check that a process has found a snapshot of the last chunk that was published before it."""
    (restored,) = life.log("model restored")
    found = (restored["chunk"], restored["behind"])
    assert found == (chunk, 0), life.wrong(f"has restored {found}, and not {chunk}")
