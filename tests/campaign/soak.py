"""A long run of two members, with a fault every few seconds.

One member is killed, stopped and shut down repeatedly; the other acquires and releases partitions,
and must not grow. The broker is restarted now and then.
"""

from __future__ import annotations

import random
import signal
import tempfile
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from stream_fs.broker import Broker, running_broker
from stream_fs.broker.session import ExternalBroker
from stream_fs.service.exit_codes import ExitCode
from tests.campaign.background_writer import BackgroundWriter
from tests.campaign.fault_result import AddArgument, FaultResult
from tests.campaign.growth import LEAST_SAMPLES, MOST, GrowthRecord, Sample
from tests.campaign.resource_usage import address, series_at, usage
from tests.support.recovery.comparison import Comparison, Published, by_partition
from tests.support.recovery.content import Content
from tests.support.recovery.launchers import Launcher, Spawned
from tests.support.recovery.stream_run import StreamRun
from tests.support.recovery.subscriber import problems
from tests.support.topics import Topics

SESSION_SECONDS = 6
MEMBER = f'"session.timeout.ms" = {SESSION_SECONDS * 1000}, "heartbeat.interval.ms" = 500'
SETTINGS = ("kafka.transaction_timeout=10", "kafka.call_timeout=10")
PARTITIONS = 2
WEIGHTS = {
    "SIGKILL": 30,
    "SIGTERM": 20,
    "SIGSTOP, SIGCONT": 20,
    "SIGSTOP past the session, SIGCONT": 10,
    "the broker restarts": 5,
    "the broker is killed": 5,
}
"""How often each happens, relative to the others."""
BROKERS = ("the broker restarts", "the broker is killed")


class Soak:
    """The two members, and samples of their resources."""

    def __init__(self, stream_run: StreamRun, broker: Broker, chance: random.Random) -> None:
        self._stream_run = stream_run
        self._broker = broker
        self._chance = chance
        self._steady = stream_run.start()
        self._pages = address(self._steady)
        self._other = stream_run.start()
        self.done: Counter[str] = Counter()
        self.steady = GrowthRecord()
        self.final_memory: list[float] = []
        """Megabytes of each process at its end."""

    def run_fault(self) -> None:
        """Inject one random fault."""
        faults = dict(WEIGHTS)
        if isinstance(self._broker, ExternalBroker):  # it must not be stopped
            faults = {name: weight for name, weight in faults.items() if name not in BROKERS}
        (fault,) = self._chance.choices(list(faults), list(faults.values()))
        self.done[fault] += 1
        match fault:
            case "SIGKILL":
                self._remember()
                self._other.kill()
                self._other = self._stream_run.start()
            case "SIGTERM":
                self._remember()
                self._stop_other()
                self._other = self._stream_run.start()
            case "the broker restarts":
                self._broker.stop()
                self._broker.start()
            case "the broker is killed":
                self._broker.kill()
                self._broker.start()
            case _:
                long = "past" in fault
                self._other.signal(signal.SIGSTOP)
                time.sleep(SESSION_SECONDS + 2 if long else self._chance.uniform(0.1, 2))
                self._other.signal(signal.SIGCONT)

    def look(self) -> None:
        """Check that both run, and take a sample of the one without faults."""
        names = series_at(self._pages)
        held = sum(name.startswith("stream_fs_chunk_fill") for name in names)
        self.steady.add(Sample(held, usage(self._steady.pid), len(names)))
        if self._steady.ended:
            raise self._steady.failure("ended by itself")
        self._revive()

    def finish(self, chunks: int) -> Published:
        """Run to the end of the input, and shut down."""
        for goal in range(self._stream_run.published(), chunks, 20):
            self._stream_run.reach(self._steady, goal)
        self._stream_run.reach(self._steady, chunks)
        self._revive()
        self._stop_other()
        self._steady.stop()
        return Published(
            self._stream_run.rankings.everything(), self._stream_run.letters.everything()
        )

    def _revive(self) -> None:
        """As a supervisor does with a process that found no broker when it started."""
        if self._other.ended:
            self._other.expect(ExitCode.BROKER)
            self._other = self._stream_run.start()

    def _stop_other(self) -> None:
        address(self._other)  # before it has its pages, it may know nothing of orderly ends
        self._other.stop()

    def _remember(self) -> None:
        """What a process used in the end, if it was at work by then."""
        if self._other.log("chunk committed"):
            self.final_memory.append(usage(self._other.pid).megabytes)


def compared(found: Published, expected: Published) -> tuple[Comparison, Comparison]:
    """Partition by partition, all together."""
    ours, theirs = by_partition(found), by_partition(expected)
    nothing = Published([], [])
    pairs = [
        ours.get(number, nothing).against(theirs.get(number, nothing))
        for number in sorted(ours.keys() | theirs.keys())
    ]
    rankings, letters = zip(*pairs, strict=True)
    return sum(rankings[1:], rankings[0]), sum(letters[1:], letters[0])


def soak(
    broker: Broker, folder: Path, seconds: float, every: float, rate: int, seed: int,
    start: Launcher = Spawned, least: int = 1,
) -> Iterator[FaultResult]:  # fmt: skip
    """Run for so many seconds, with a fault every few of them and so many records a second.

    There are at least so many faults, however long that takes.
    """
    topics = Topics(broker.bootstrap)
    topic = topics.create("soak", partitions=PARTITIONS)
    content = Content(topic, chunks=0)
    wrong: list[str] = []
    chance = random.Random(seed)

    def stream_run(name: str) -> StreamRun:
        return StreamRun(broker.bootstrap, content, folder, name, start, MEMBER, settings=SETTINGS)

    try:
        with stream_run("soaked") as disturbed:
            writer = BackgroundWriter(broker.bootstrap, topic, PARTITIONS, rate)
            members = Soak(disturbed, broker, chance)
            end = time.monotonic() + seconds
            with writer:
                while time.monotonic() < end or members.done.total() < least:
                    pause = time.monotonic() + chance.uniform(0.5, 1.5) * every
                    while time.monotonic() < pause:
                        disturbed.published()
                        members.look()
                        time.sleep(0.25)
                    members.run_fault()
            found = members.finish(writer.chunks)
            wrong += problems(message.value for message in found.rankings)
        with stream_run("undisturbed") as calm:
            process = calm.start()
            for goal in range(20, writer.chunks, 20):
                calm.reach(process, goal)
            calm.reach(process, writer.chunks)
            process.stop()
            expected = Published(calm.rankings.everything(), calm.letters.everything())
    except (AssertionError, TimeoutError, OSError) as error:
        wrong.append(str(error))
        yield FaultResult(
            "a fault every few seconds", 1, shown="not finished", problems=tuple(wrong)
        )
        return
    finally:
        topics.remove()
    rankings, letters = compared(found, expected)
    shown_text = ", ".join(f"{name} × {count}" for name, count in sorted(members.done.items()))
    yield FaultResult(
        shown_text, members.done.total(), rankings, letters, f"{seconds:g} s", tuple(wrong)
    )
    yield members.steady.result("the same: the member without faults", members.done.total())
    yield from restarts(members.final_memory)


def restarts(ends: Sequence[float]) -> Iterator[FaultResult]:
    """Whether later processes end with more memory than earlier ones."""
    if len(ends) < LEAST_SAMPLES:
        return
    early, later = median(ends[: len(ends) // 2]), median(ends[len(ends) // 2 :])
    shown = f"{early:.0f} MB at the end of early processes, {later:.0f} MB of late ones"
    wrong = ("later processes have more memory",) if later - early > MOST["MB"] else ()
    yield FaultResult("the same: processes that were ended", len(ends), shown=shown, problems=wrong)


def run(options: Namespace) -> Iterator[FaultResult]:
    """One long run."""
    with (
        tempfile.TemporaryDirectory(prefix="stream-fs-soak-") as name,
        running_broker() as broker,
    ):
        yield from soak(
            broker,
            Path(name),
            options.soak_seconds,
            options.soak_every,
            options.soak_rate,
            options.seed,
        )


def arguments(add: AddArgument) -> None:
    add("--soak-seconds", type=float, default=3600.0, help="how long there are faults")
    add("--soak-every", type=float, default=5.0, help="seconds between them, about")
    add("--soak-rate", type=int, default=40, help="records a second and partition")
