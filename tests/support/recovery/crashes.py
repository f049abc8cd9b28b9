"""The crash matrix of a real process, and other ways in which processes are killed and replaced."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from typing import NamedTuple

from stream_fs.service.exit_codes import ExitCode
from tests.support.processes import wait_until
from tests.support.recovery.content import SNAPSHOT_EVERY, has_snapshot
from tests.support.recovery.faulty_service import STEPS, FaultPoint
from tests.support.recovery.service_process import ServiceProcess
from tests.support.recovery.stream_run import StreamRun

NO_LINGER = ("--set", "output.linger_seconds=0")
"""Every chunk has a transaction of its own, so that the occurrences of a step can be counted."""


class CrashPoint(NamedTuple):
    """A cell of the crash matrix: SIGKILL at a step of a transaction.

    Without `linger` a transaction holds one chunk, with or without a snapshot. With it, the
    transactions of a backlog hold several chunks and end with a snapshot.
    """

    step: str
    snapshot: bool
    linger: bool

    def __str__(self) -> str:
        chunks = "several chunks" if self.linger else "one chunk"
        return f"{self.step}, {chunks}, {'with' if self.snapshot else 'without'} snapshot"

    @property
    def commits(self) -> bool:
        """Whether the transaction is committed at this step."""
        return STEPS.index(self.step) >= STEPS.index("committed")

    def chunk_after(self, committed: int) -> int:
        """The next chunk with or without snapshot; not the first one, whose size differs."""
        chunk = max(committed, 1) + 1
        while has_snapshot(chunk) != self.snapshot:
            chunk += 1
        return chunk

    def fault_point(self, chunk: int, committed: int) -> FaultPoint:
        """The step at this chunk in a process that starts after so many committed chunks."""
        ahead = range(committed + 1, chunk + 1)
        if self.step == "updated":  # replayed chunks count as well
            restored = (committed - 1) // SNAPSHOT_EVERY * SNAPSHOT_EVERY + 1 if committed else 0
            return FaultPoint(self.step, chunk - restored)
        if self.step == "snapshot sent":
            return FaultPoint(self.step, sum(map(has_snapshot, ahead)))
        return FaultPoint(self.step, len(ahead))


CRASH_MATRIX = (
    *(
        CrashPoint(step, snapshot, linger=False)
        for step in STEPS
        for snapshot in (True, False)
        if snapshot or step != "snapshot sent"
    ),
    *(CrashPoint(step, snapshot=True, linger=True) for step in STEPS),
)


def kill_at(stream_run: StreamRun, point: CrashPoint, committed: int) -> int:
    """Kill one process at this point, after so many committed chunks; how many are committed then.

    With linger, that is in its second transaction, and the committed chunks are not counted.
    """
    if point.linger:
        stream_run.start(FaultPoint(point.step, 2)).expect(-signal.SIGKILL)
        return committed
    chunk = point.chunk_after(committed)
    fault_point = point.fault_point(chunk, committed)
    stream_run.start(fault_point, more=NO_LINGER).expect(-signal.SIGKILL)
    committed = chunk if point.commits else chunk - 1
    stream_run.expect_published(committed)
    return committed


def count_batched_chunks(process: ServiceProcess) -> int:
    """Chunks that a process has committed in a transaction together with later ones."""
    return sum("seconds" not in line for line in process.log("chunk committed"))


def kill_at_random(stream_run: StreamRun, kills: int, chance: random.Random) -> None:
    """Kill so many processes from outside: most of them at work, some while they start.

    The kills are spread over the stream.
    """
    for share in _shares(stream_run, kills, chance):
        process = stream_run.start()
        if share:
            stream_run.reach(process, stream_run.published() + share)
            time.sleep(chance.uniform(0, 0.05))
        else:
            time.sleep(chance.uniform(0, 3))
        assert not process.ended, process.failure("ended by itself")
        process.kill()


def _shares(stream_run: StreamRun, kills: int, chance: random.Random) -> Iterator[int]:
    """Chunks that each process may commit before it is killed; every fifth commits none."""
    for done in range(kills):
        left = stream_run.content.chunks - stream_run.published()
        fair = left // (kills - done + 1)
        yield 0 if done % 5 == 4 else min(left, chance.randint(1, max(1, 2 * fair - 5)))


def kill_during_shutdown(stream_run: StreamRun, times: int, chance: random.Random) -> None:
    """Send SIGTERM to so many processes, and SIGKILL during their graceful shutdown."""
    for share in _shares(stream_run, times, chance):
        process = stream_run.start()
        stream_run.reach(process, stream_run.published() + share)
        process.until_running()
        process.signal(signal.SIGTERM)
        time.sleep(chance.uniform(0, 0.1))
        process.kill()


def replace_stopped_process(stream_run: StreamRun) -> None:
    """Stop a process before a commit, and continue it when another one owns its partition."""
    committed = len(stream_run.rankings.everything())
    first = stream_run.start(FaultPoint("records sent", 3), "STOP", more=NO_LINGER)
    first.until(lambda: first.stopped, "its stop")
    stream_run.expect_published(committed + 2)
    second = stream_run.start()
    stream_run.reach(second, committed + 5)
    first.signal(signal.SIGCONT)
    # Both have the same group.instance.id: the first may learn of the group's fencing before that
    # of its transaction.
    wait_until(
        lambda: bool(first.log("taken over by another owner")) or first.ended,
        "the stopped process is fenced",
    )
    if first.ended:
        first.expect(ExitCode.BROKER)
        assert first.log_contains("group.instance.id"), first.failure("ended without a reason")
    first.kill()
    second.stop()


def stop_repeatedly(stream_run: StreamRun, times: int, chunks: int) -> None:
    """Shut down so many processes, each after so many published chunks.

    With a number of chunks that is no multiple of the snapshot interval, each shutdown writes an
    unscheduled snapshot; checks that it does, and that the next process replays nothing.
    """
    for committed in range(0, times * chunks, chunks):
        process = stream_run.start(FaultPoint("advised", chunks), "TERM", more=NO_LINGER)
        process.expect(0)
        stream_run.expect_published(committed + chunks)
        saved = [line["chunk"] for line in process.log("snapshot committed")]
        assert saved == [committed + chunks], process.failure(f"saved {saved} at its end")
        if committed:
            expect_nothing_to_replay(process, committed)


def expect_nothing_to_replay(process: ServiceProcess, chunk: int) -> None:
    """Check that a process restored a snapshot of the last chunk published before its start."""
    (restored,) = process.log("model restored")
    found = (restored["chunk"], restored["behind"])
    assert found == (chunk, 0), process.failure(f"restored {found}, not {chunk}")
