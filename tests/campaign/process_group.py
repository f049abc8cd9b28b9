"""Several processes that share the partitions of a stream, restarted as by an orchestrator."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from stream_fs.service.exit_codes import ExitCode
from tests.campaign.fault_result import FaultResult
from tests.support.recovery.comparison import Comparison, Published
from tests.support.recovery.content import CHUNK, Content, Source, records_for
from tests.support.recovery.launchers import Launcher
from tests.support.recovery.prepared_stream import PreparedStream
from tests.support.recovery.service_process import ServiceProcess
from tests.support.recovery.stream_run import StreamRun
from tests.support.recovery.subscriber import Received, problems
from tests.support.topics import Topics

TIMEOUT_SECONDS = 300.0
"""More than all time limits of the service one after the other."""
STARTED_AGAIN = (ExitCode.BROKER, ExitCode.WATCHDOG)
"""Exit codes of a process that a broker failure may end; another one continues."""
QUICK = '"session.timeout.ms" = 6000, "heartbeat.interval.ms" = 500'
"""Properties of members whose loss, and which themselves notice a rebalance, within seconds."""


class ProcessGroup:
    """The processes of one run; those that a broker failure ends are restarted."""

    def __init__(
        self, stream_run: StreamRun, members: int = 2, *, stop_rounds: int = 0, failures: int = 0
    ) -> None:
        """With `stop_rounds`, each stops so many times at every step of a commit.

        The broker fails so many times (`failures`): each may end every process once.
        """
        self.stream_run = stream_run
        self._stand = stop_rounds
        self._most_ends = members * failures
        self.members: list[ServiceProcess] = []
        self.ends: Counter[int] = Counter()
        """Processes that ended by themselves, by exit code."""
        for _ in range(members):
            self.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.members:
            process.kill()

    def join(self) -> ServiceProcess:
        process = self.stream_run.start(
            more=["--stop-rounds", str(self._stand)] if self._stand else []
        )
        self.members.append(process)
        return process

    def restart_ended(self) -> None:
        """Restart processes that a broker failure has ended; any other end is an error."""
        for process in [process for process in self.members if process.ended]:
            code = process.code
            if code not in STARTED_AGAIN:
                raise process.failure(f"ended with {code}")
            self.ends[code] += 1
            if self.ends.total() > self._most_ends:
                raise process.failure(f"ended with {code}, where {self._most_ends} may end at most")
            self.members.remove(process)
            self.join()

    def until(
        self, condition: Callable[[], bool], what: str, seconds: float = TIMEOUT_SECONDS
    ) -> float:
        """Wait for an effect of the processes; the seconds it took."""
        began = time.monotonic()
        while not condition():
            self.restart_ended()
            if time.monotonic() > began + seconds:
                tails = "\n".join(
                    str(process.failure(f"({process.pid})")) for process in self.members
                )
                raise AssertionError(f"no {what} within {seconds:.0f} s; {tails}")
            time.sleep(0.02)
        return time.monotonic() - began

    def counts(self) -> Counter[int]:
        """Rankings that a subscriber has received so far, by partition."""
        self.stream_run.rankings.listen(0)
        return Counter(
            number
            for message in self.stream_run.rankings.messages
            if (number := ranked_partition(message)) is not None
        )

    def reach(self, count: int) -> None:
        """Wait until so many rankings of partitions are published."""
        self.until(lambda: self.counts().total() >= count, f"ranking {count}")

    def advance(self, partitions: int) -> float:
        """Wait until every partition has advanced or is at its end; the seconds it took."""
        before = self.counts()
        end = self.stream_run.content.chunks // partitions

        def advanced() -> bool:
            now = self.counts()
            return all(now[n] > before[n] or now[n] >= end for n in range(partitions))

        return self.until(advanced, "progress of every partition")

    def merge(self) -> None:
        """Wait until a merged ranking is published."""

        def merged() -> bool:
            return self.stream_run.published() > self.counts().total()

        self.until(merged, "merged ranking")

    def finish(self) -> Published:
        """Run to the end of the input and shut down; everything the run has published."""
        self.reach(self.stream_run.content.chunks)
        for process in self.members:
            process.stop()
        return Published(
            self.stream_run.rankings.everything(), self.stream_run.letters.everything()
        )

    @property
    def exits(self) -> str:
        """The exit codes of processes that ended by themselves, where they may."""
        if not self._most_ends:
            return ""
        codes = ", ".join(f"{n} × exit code {code}" for code, n in sorted(self.ends.items()))
        return f"processes ended: {codes or 'none'}, {self._most_ends} may"


@contextmanager
def prepare_shared_stream(
    bootstrap: str,
    folder: Path,
    partitions: int,
    chunks: int,
    start: Launcher,
    nodes: Sequence[int] | None = None,
) -> Iterator[PreparedStream]:
    """A topic with so many partitions of so many chunks, and the output of an undisturbed run.

    Each partition is on these `nodes`, of which the first one leads it.
    """
    topics = Topics(bootstrap)
    try:
        topic = topics.create("shared", partitions=partitions, nodes=nodes)
        for number in range(partitions):
            source = Source(bootstrap, topic, number, seed=number)
            source.write(records_for(chunks) + CHUNK // 2)
        content = Content(topic, chunks * partitions)
        expected = undisturbed(bootstrap, content, folder, start)
        yield PreparedStream(bootstrap, content, folder, start, expected, partitions)
    finally:
        topics.remove()


def undisturbed(bootstrap: str, content: Content, folder: Path, start: Launcher) -> Published:
    """What a single process without a fault publishes."""
    with StreamRun(bootstrap, content, folder, "undisturbed", start, QUICK) as stream_run:
        return stream_run.complete()


def compare_run(
    fault: str,
    times: int,
    found: Published,
    expected: Published,
    shown: Iterable[str] = (),
    merged: Comparison | None = None,
) -> FaultResult:
    """The result of a fault: each partition compared with that of an undisturbed run.

    `merged` is the comparison of merged rankings, if the stream has any.
    """
    rankings, letters = Comparison(0, 0, 0, 0, 0), Comparison(0, 0, 0, 0, 0)
    actual, wanted = by_partition(found), by_partition(expected)
    for number in sorted(actual.keys() | wanted.keys()):
        more = actual[number].against(wanted[number])
        rankings, letters = rankings + more[0], letters + more[1]
    wrong = problems(message.value for message in found.rankings)
    shown = [*shown]
    if merged is not None:
        rankings += merged
        shown.append(f"{merged.compared} of the rankings are merged")
        wrong += [] if merged.compared else ["nothing was merged"]
    return FaultResult(
        fault, times, rankings, letters, "; ".join(filter(None, shown)), tuple(wrong)
    )


def failed_result(fault: str, times: int, stream_run: StreamRun, error: Exception) -> FaultResult:
    """The result of a fault after which the run did not complete."""
    out = f"{stream_run.published()} rankings are published"
    return FaultResult(fault, times, shown=out, problems=(str(error),))


def by_partition(published: Published) -> defaultdict[int, Published]:
    """The messages of each partition, without merged rankings."""
    found: defaultdict[int, Published] = defaultdict(lambda: Published([], []))
    for message in published.rankings:
        number = ranked_partition(message)
        if number is not None:
            found[number].rankings.append(message)
    for message in published.letters:
        found[int(dict(message.headers)["stream-fs-partition"] or b"")].letters.append(message)
    return found


def ranked_partition(message: Received) -> int | None:
    """The input partition of a ranking; None of a merged one, whose key is the stream's name."""
    number = (message.key or b"").decode().rpartition("/")[2]
    return int(number) if number.isdecimal() else None
