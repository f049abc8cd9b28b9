"""Several processes that share the partitions of a stream, tended as an orchestrator does it."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from stream_fs.service.exit_codes import ExitCode
from tests.campaign.fault_result import Account
from tests.support.recovery.comparison import Comparison, Published
from tests.support.recovery.content import CHUNK, Content, Source, records_for
from tests.support.recovery.launchers import Start
from tests.support.recovery.prepared_stream import Stage
from tests.support.recovery.service_process import Life
from tests.support.recovery.stream_run import Journey
from tests.support.recovery.subscriber import Received, problems
from tests.support.topics import Topics

PATIENCE_SECONDS = 300.0
"""When to give up: more than all time limits of the service one after the other."""
STARTED_AGAIN = (ExitCode.BROKER, ExitCode.WATCHDOG)
"""How a process may end by itself where its broker fails it: the next one goes on."""
QUICK = '"session.timeout.ms" = 6000, "heartbeat.interval.ms" = 500'
"""Members whose loss is noticed soon, and who notice a rebalance soon."""


class Troupe:
    """The processes of one journey; those that a broker's failure ends are started again."""

    def __init__(
        self, journey: Journey, members: int = 2, *, stand: int = 0, failures: int = 0
    ) -> None:
        """With `stand`, each stops so many times at every step of a commit.

        So many `failures` of the broker does the journey suffer: each may end every process once.
        """
        self.journey = journey
        self._stand = stand
        self._most_ends = members * failures
        self.members: list[Life] = []
        self.ends: Counter[int] = Counter()
        """How many have ended by themselves, by exit code."""
        for _ in range(members):
            self.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for life in self.members:
            life.kill()

    def join(self) -> Life:
        life = self.journey.start(more=["--stand", str(self._stand)] if self._stand else [])
        self.members.append(life)
        return life

    def tend(self) -> None:
        """Start those again that a broker's failure has ended; any other end is a fault."""
        for life in [life for life in self.members if life.ended]:
            code = life.code
            if code not in STARTED_AGAIN:
                raise life.wrong(f"has ended with {code}")
            self.ends[code] += 1
            if self.ends.total() > self._most_ends:
                raise life.wrong(f"has ended with {code}, where {self._most_ends} may end at most")
            self.members.remove(life)
            self.join()

    def until(
        self, condition: Callable[[], bool], what: str, seconds: float = PATIENCE_SECONDS
    ) -> float:
        """Wait for something that they bring about; how many seconds it took."""
        began = time.monotonic()
        while not condition():
            self.tend()
            if time.monotonic() > began + seconds:
                tails = "\n".join(str(life.wrong(f"({life.pid})")) for life in self.members)
                raise AssertionError(f"no {what} within {seconds:.0f} s; {tails}")
            time.sleep(0.02)
        return time.monotonic() - began

    def counts(self) -> Counter[int]:
        """Rankings that a subscriber has received by now, by partition."""
        self.journey.rankings.listen(0)
        return Counter(
            number
            for message in self.journey.rankings.messages
            if (number := ranked_partition(message)) is not None
        )

    def reach(self, count: int) -> None:
        """Wait until so many rankings of partitions are out."""
        self.until(lambda: self.counts().total() >= count, f"ranking {count}")

    def advance(self, partitions: int) -> float:
        """Wait until every partition has gone on, or is at its end; how many seconds it took."""
        before = self.counts()
        end = self.journey.content.chunks // partitions

        def gone_on() -> bool:
            now = self.counts()
            return all(now[n] > before[n] or now[n] >= end for n in range(partitions))

        return self.until(gone_on, "progress of every partition")

    def merge(self) -> None:
        """Wait until a merged ranking is out."""

        def merged() -> bool:
            return self.journey.published() > self.counts().total()

        self.until(merged, "merged ranking")

    def finish(self) -> Published:
        """Go on to the end, and put everything in order; all that was published on the way."""
        self.reach(self.journey.content.chunks)
        for life in self.members:
            life.stop()
        return Published(self.journey.rankings.everything(), self.journey.letters.everything())

    @property
    def told(self) -> str:
        """What has to be said of processes that have ended by themselves, where they may."""
        if not self._most_ends:
            return ""
        codes = ", ".join(f"{n} × exit code {code}" for code, n in sorted(self.ends.items()))
        return f"processes ended: {codes or 'none'}, {self._most_ends} may"


@contextmanager
def shared_stage(
    bootstrap: str,
    folder: Path,
    partitions: int,
    chunks: int,
    start: Start,
    nodes: Sequence[int] | None = None,
) -> Iterator[Stage]:
    """A topic with so many partitions of so many chunks, and one undisturbed journey.

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
        yield Stage(bootstrap, content, folder, start, expected, partitions)
    finally:
        topics.remove()


def undisturbed(bootstrap: str, content: Content, folder: Path, start: Start) -> Published:
    """What a single process publishes that nothing happens to."""
    with Journey(bootstrap, content, folder, "undisturbed", start, QUICK) as journey:
        return journey.complete()


def judged(
    fault: str,
    times: int,
    found: Published,
    expected: Published,
    shown: Iterable[str] = (),
    merged: Comparison | None = None,
) -> Account:
    """What became of a fault, each partition against the same one of an undisturbed journey.

    Where there are `merged` rankings, it is known how they compare with what should be there.
    """
    rankings, letters = Comparison(0, 0, 0, 0, 0), Comparison(0, 0, 0, 0, 0)
    ours, theirs = by_partition(found), by_partition(expected)
    for number in sorted(ours.keys() | theirs.keys()):
        more = ours[number].against(theirs[number])
        rankings, letters = rankings + more[0], letters + more[1]
    wrong = problems(message.value for message in found.rankings)
    told = [*shown]
    if merged is not None:
        rankings += merged
        told.append(f"{merged.compared} of the rankings are merged")
        wrong += [] if merged.compared else ["nothing was merged"]
    return Account(fault, times, rankings, letters, "; ".join(filter(None, told)), tuple(wrong))


def failed(fault: str, times: int, journey: Journey, error: Exception) -> Account:
    """A fault that a journey did not get over."""
    out = f"{journey.published()} rankings are out"
    return Account(fault, times, shown=out, problems=(str(error),))


def by_partition(published: Published) -> defaultdict[int, Published]:
    """Of each partition, without merged rankings."""
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
