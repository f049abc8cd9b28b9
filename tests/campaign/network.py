"""The connection to the broker cut, slowed down and silenced, and the broker itself restarted.

A connection is silenced in both directions, or in one: requests are served, and the answers lost.

Processes reach their broker through a proxy; the campaign reads its topics directly.
"""

from __future__ import annotations

import itertools
import random
import signal
import tempfile
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from stream_fs.broker.node import Broker
from tests.campaign.fault_result import AddArgument, FaultResult
from tests.campaign.process_group import (
    QUICK,
    ProcessGroup,
    compare_run,
    failed_result,
    prepare_shared_stream,
)
from tests.campaign.proxy import Proxy
from tests.support.cluster import running_cluster
from tests.support.recovery.content import good_records, records_for
from tests.support.recovery.faulty_service import STEPS
from tests.support.recovery.launchers import Launcher, Spawned
from tests.support.recovery.prepared_stream import PreparedStream
from tests.support.recovery.service_process import ServiceProcess
from tests.support.recovery.stream_run import DEFAULTS, RunSettings, StreamRun

LISTENER = "PROXIED"
SHORT_TIMEOUTS = RunSettings(limits="call_timeout = 4\ntransaction_timeout = 10")
"""Timeouts that expire many times in a row."""
LONG_TIMEOUTS = RunSettings(limits="call_timeout = 10\ntransaction_timeout = 20")
"""Timeouts longer than a subscriber needs to see a commit that was not answered."""
DELAY, RATE = 0.05, 20_000.0
"""Of a slow connection: seconds for each piece, and bytes in a second. A process takes several
times longer to get its records than it works on them, so that it cannot read them all ahead."""


@dataclass(frozen=True)
class ProxySetup:
    """A broker behind a proxy; a stream of one partition on it, and one of several."""

    proxy: Proxy
    broker: Broker
    alone: PreparedStream
    shared: PreparedStream
    chance: random.Random

    def run_fault(
        self,
        fault: str,
        times: int,
        inject: Callable[[ProxySetup, ProcessGroup], str],
        *,
        run_settings: RunSettings = DEFAULTS,
        stop_rounds: int = 0,
    ) -> FaultResult:
        """Compare one run with an undisturbed one; `inject` returns a remark for the result.

        With `stop_rounds`, of one process with one partition, which stops at every step; without,
        of two that share several.
        """
        prepared = self.alone if stop_rounds else self.shared
        run_settings = RunSettings(bootstrap=self.proxy.address, limits=run_settings.limits)
        name = fault.replace(" ", "-").replace(",", "")
        where = (prepared.bootstrap, prepared.content, prepared.folder, name, prepared.start)
        with StreamRun(*where, QUICK, run_settings) as stream_run:
            try:
                with ProcessGroup(
                    stream_run, 1 if stop_rounds else 2, stop_rounds=stop_rounds, failures=times
                ) as group:
                    shown = inject(self, group)
                    found = group.finish()
                return compare_run(fault, times, found, prepared.expected, [shown, group.exits])
            except (AssertionError, TimeoutError) as error:
                return failed_result(fault, times, stream_run, error)
            finally:
                self.broker.start()
                self.proxy.restore()


def spread_over_stream(group: ProcessGroup, times: int) -> Iterator[int]:
    """Wait for so many points, spread evenly over the stream; yields their numbers."""
    for number in range(times):
        group.reach(group.stream_run.content.chunks * (number + 1) // (times + 2))
        yield number


def cut(setup: ProxySetup, group: ProcessGroup, times: int) -> str:
    """Cut all connections so many times, each for up to three seconds."""
    connections = 0
    for _ in spread_over_stream(group, times):
        connections += setup.proxy.cut()
        time.sleep(setup.chance.uniform(0, 3))
        setup.proxy.restore()
    assert connections, "there was no connection to cut"
    return f"{connections} connections"


def silence(setup: ProxySetup, group: ProcessGroup, times: int) -> str:
    """Silence all open connections so many times."""
    slowest, connections = 0.0, 0
    partitions = setup.shared.partitions
    for _ in spread_over_stream(group, times):
        connections += setup.proxy.silence()
        slowest = max(slowest, group.advance(partitions))
    assert connections, "there was no connection to silence"
    return f"{connections} connections; advanced in {slowest:.0f} s at most"


def slow(setup: ProxySetup) -> FaultResult:
    """Slow connections from the start to the last ranking, so that nothing is read ahead."""
    setup.proxy.slow_down(DELAY, RATE)
    before, needed = setup.proxy.bytes_to_clients, input_bytes(setup.shared)

    def wait(setup: ProxySetup, group: ProcessGroup) -> str:
        count = group.stream_run.content.chunks
        began = time.monotonic()
        group.reach(count)
        seconds, bytes_to_clients = time.monotonic() - began, setup.proxy.bytes_to_clients - before
        assert bytes_to_clients > needed, (
            f"{bytes_to_clients} bytes passed, and the input has {needed}"
        )
        return f"{seconds / count:.1f} s for a ranking, {bytes_to_clients / 1000:.0f} kB slowly"

    return setup.run_fault("slow connections", 1, wait)


def input_bytes(prepared: PreparedStream) -> int:
    """The bytes of the good records of an input."""
    chunks = prepared.content.chunks // prepared.partitions
    return sum(
        len(value)
        for number in range(prepared.partitions)
        for value in itertools.islice(good_records(number), records_for(chunks))
    )


def at_every_step(
    setup: ProxySetup, group: ProcessGroup, rounds: int, inject: Callable[[], int]
) -> str:
    """Inject the fault at every stop of the process, and continue it."""
    seen: Counter[str] = Counter()
    while group.counts().total() < group.stream_run.content.chunks:
        group.restart_ended()
        for process in group.members:
            if not process.ended and process.stopped:
                assert inject(), "there was no connection to cut or to silence"
                process.signal(signal.SIGCONT)
                time.sleep(setup.chance.uniform(0.1, 1.5))
                setup.proxy.restore()
        time.sleep(0.01)
    for process in group.stream_run.processes:
        seen += process.stops_by_step()
    missed = [step for step in STEPS if seen[step] < rounds]
    assert not missed, f"too few stops at {missed}: {seen}"
    return ", ".join(f"{step} {count}" for step, count in seen.items())


def lose_answers(setup: ProxySetup, group: ProcessGroup, rounds: int) -> str:
    """Lose the answers to commits: they are applied, and the process does not know."""
    applied = 0
    while group.counts().total() < group.stream_run.content.chunks:
        group.restart_ended()
        for process in group.members:
            if not process.ended and process.stopped:
                if process.last_stop == "records sent":
                    applied += _unanswered(setup, group, process)
                process.signal(signal.SIGCONT)
        time.sleep(0.01)
    assert applied >= rounds, f"{applied} commits were applied without an answer"
    return f"{applied} applied before the process knew"


def _unanswered(setup: ProxySetup, group: ProcessGroup, process: ServiceProcess) -> bool:
    """Whether a ranking is published while its process, stopped before commit, does not know."""
    before = len(group.stream_run.rankings.decided())
    assert setup.proxy.lose_answers(), "there were no connections"
    process.signal(signal.SIGCONT)
    group.until(lambda: group.counts().total() > before, "commit that is not answered")
    return all(line["chunk"] != before + 1 for line in process.log("chunk committed"))


def restart(setup: ProxySetup, group: ProcessGroup, times: int, end: Callable[[], None]) -> str:
    """Stop or kill the broker, and restart it when every process has noticed."""
    slowest = 0.0
    for _ in spread_over_stream(group, times):
        before = [process.count("no broker answers") for process in group.members]
        end()

        def noticed(before: list[int] = before) -> bool:
            now = [process.count("no broker answers") for process in group.members]
            return all(n > b for n, b in zip(now, before, strict=True))

        group.until(noticed, "log line of every process")
        setup.broker.start()
        slowest = max(slowest, group.advance(setup.shared.partitions))
    return f"advanced in {slowest:.0f} s at most"


def faults(setup: ProxySetup, options: Namespace) -> Iterator[FaultResult]:
    few, rounds = options.network_times, options.network_rounds
    steps = rounds * len(STEPS)
    proxy, broker = setup.proxy, setup.broker
    yield setup.run_fault("connections cut", few, lambda s, t: cut(s, t, few))
    yield setup.run_fault(
        "connections cut at every step of a commit",
        steps,
        lambda s, t: at_every_step(s, t, rounds, proxy.cut),
        stop_rounds=rounds,
    )
    yield setup.run_fault(
        "commits applied, their answers lost",
        rounds,
        lambda s, t: lose_answers(s, t, rounds),
        run_settings=LONG_TIMEOUTS,
        stop_rounds=rounds,
    )
    yield slow(setup)
    yield setup.run_fault("half-open connections", few, lambda s, t: silence(s, t, few))
    yield setup.run_fault(
        "half-open connections at every step of a commit",
        steps,
        lambda s, t: at_every_step(s, t, rounds, proxy.silence),
        run_settings=SHORT_TIMEOUTS,
        stop_rounds=rounds,
    )
    yield setup.run_fault("broker stopped", few, lambda s, t: restart(s, t, few, broker.stop))
    yield setup.run_fault("broker killed", few, lambda s, t: restart(s, t, few, broker.kill))


@contextmanager
def setup(
    folder: Path, partitions: int, chunks: int, start: Launcher, chance: random.Random
) -> Iterator[ProxySetup]:
    with ExitStack() as stack:
        proxy = stack.enter_context(Proxy())
        cluster = stack.enter_context(
            running_cluster(
                1,
                log_dir=folder,
                listeners={LISTENER: "PLAINTEXT"},
                advertised={1: {LISTENER: proxy.address}},
            )
        )
        (broker,) = cluster.nodes.values()
        proxy.upstream = broker.address(LISTENER)
        address = broker.bootstrap
        alone = stack.enter_context(prepare_shared_stream(address, folder, 1, chunks, start))
        shared = stack.enter_context(
            prepare_shared_stream(address, folder, partitions, chunks, start)
        )
        yield ProxySetup(proxy, broker, alone, shared, chance)


def run(options: Namespace) -> Iterator[FaultResult]:
    """One run for every fault, each against an undisturbed one."""
    chance = random.Random(options.seed)
    partitions, chunks = options.network_partitions, options.network_chunks
    with (
        tempfile.TemporaryDirectory(prefix="stream-fs-campaign-") as folder,
        setup(Path(folder), partitions, chunks, Spawned, chance) as made,
    ):
        yield from faults(made, options)


def arguments(add: AddArgument) -> None:
    add("--network-times", type=int, default=3, help="times that each fault is injected")
    add("--network-rounds", type=int, default=2, help="times at every step of a commit")
    add("--network-partitions", type=int, default=4, help="partitions of the stream")
    add("--network-chunks", type=int, default=60, help="chunks in each partition")
