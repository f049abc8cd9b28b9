"""The connection to the broker cut, slowed down and silenced, and the broker itself restarted.

Silenced in both directions, or in one: what is asked for is done, and the answer is lost.

Processes reach their broker through a proxy; the proof looks at it directly.
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
from tests.campaign.fault_result import Account, AddArgument
from tests.campaign.process_group import QUICK, Troupe, failed, judged, shared_stage
from tests.campaign.proxy import Proxy
from tests.support.cluster import running_cluster
from tests.support.recovery.content import good_records, records_for
from tests.support.recovery.faulty_service import STEPS
from tests.support.recovery.launchers import Fresh, Start
from tests.support.recovery.prepared_stream import Stage
from tests.support.recovery.service_process import Life
from tests.support.recovery.stream_run import USUAL, Journey, Manner

LISTENER = "PROXIED"
SOON = Manner(limits="call_timeout = 4\ntransaction_timeout = 10")
"""Limits that are reached many times in a row."""
OPEN = Manner(limits="call_timeout = 10\ntransaction_timeout = 20")
"""Limits that are longer than a subscriber takes to see a commit that was not answered."""
DELAY, RATE = 0.05, 20_000.0
"""Of a slow connection: seconds for each piece, and bytes in a second. A process takes several
times longer to get its records than it works on them, so that it cannot read them all ahead."""


@dataclass(frozen=True)
class Scene:
    """A broker behind a proxy; a stream of one partition on it, and one of several."""

    proxy: Proxy
    broker: Broker
    alone: Stage
    shared: Stage
    chance: random.Random

    def suffer(
        self,
        fault: str,
        times: int,
        inflict: Callable[[Scene, Troupe], str],
        *,
        manner: Manner = USUAL,
        stand: int = 0,
    ) -> Account:
        """One journey against an undisturbed one; `inflict` tells what else there is to say.

        With `stand`, of one process with one partition, which stops at every step; otherwise of
        two that share several.
        """
        staged = self.alone if stand else self.shared
        manner = Manner(bootstrap=self.proxy.address, limits=manner.limits)
        name = fault.replace(" ", "-").replace(",", "")
        where = (staged.bootstrap, staged.content, staged.folder, name, staged.start)
        with Journey(*where, QUICK, manner) as journey:
            try:
                with Troupe(journey, 1 if stand else 2, stand=stand, failures=times) as troupe:
                    told = inflict(self, troupe)
                    found = troupe.finish()
                return judged(fault, times, found, staged.expected, [told, troupe.told])
            except (AssertionError, TimeoutError) as error:
                return failed(fault, times, journey, error)
            finally:
                self.broker.start()
                self.proxy.mend()


def shares(troupe: Troupe, times: int) -> Iterator[int]:
    """So many moments, spread over the stream; which one it is."""
    for number in range(times):
        troupe.reach(troupe.journey.content.chunks * (number + 1) // (times + 2))
        yield number


def cut(scene: Scene, troupe: Troupe, times: int) -> str:
    """Again and again, for up to three seconds."""
    connections = 0
    for _ in shares(troupe, times):
        connections += scene.proxy.cut()
        time.sleep(scene.chance.uniform(0, 3))
        scene.proxy.mend()
    assert connections, "there was nothing to cut"
    return f"{connections} connections"


def silence(scene: Scene, troupe: Troupe, times: int) -> str:
    """Bytes vanish in the connections that there are."""
    slowest, connections = 0.0, 0
    partitions = scene.shared.partitions
    for _ in shares(troupe, times):
        connections += scene.proxy.silence()
        slowest = max(slowest, troupe.advance(partitions))
    assert connections, "there was nothing to silence"
    return f"{connections} connections; went on in {slowest:.0f} s at most"


def slow(scene: Scene) -> Account:
    """From the start to the last ranking: nothing is read ahead while the connection is fast."""
    scene.proxy.slow_down(DELAY, RATE)
    before, needed = scene.proxy.carried, input_bytes(scene.shared)

    def wait(scene: Scene, troupe: Troupe) -> str:
        count = troupe.journey.content.chunks
        began = time.monotonic()
        troupe.reach(count)
        seconds, carried = time.monotonic() - began, scene.proxy.carried - before
        assert carried > needed, f"{carried} bytes came through, and the input has {needed}"
        return f"{seconds / count:.1f} s for a ranking, {carried / 1000:.0f} kB in slow answers"

    return scene.suffer("slow connections", 1, wait)


def input_bytes(staged: Stage) -> int:
    """At least so many are in the input of a stage: those of its good records."""
    chunks = staged.content.chunks // staged.partitions
    return sum(
        len(value)
        for number in range(staged.partitions)
        for value in itertools.islice(good_records(number), records_for(chunks))
    )


def at_every_step(scene: Scene, troupe: Troupe, rounds: int, inflict: Callable[[], int]) -> str:
    """Wherever the process stands, `inflict`, and let it go on."""
    seen: Counter[str] = Counter()
    while troupe.counts().total() < troupe.journey.content.chunks:
        troupe.tend()
        for life in troupe.members:
            if not life.ended and life.standing:
                assert inflict(), "there was nothing to cut or to silence"
                life.signal(signal.SIGCONT)
                time.sleep(scene.chance.uniform(0.1, 1.5))
                scene.proxy.mend()
        time.sleep(0.01)
    for life in troupe.journey.lives:
        seen += life.stood()
    missed = [step for step in STEPS if seen[step] < rounds]
    assert not missed, f"it did not stand often enough at {missed}: {seen}"
    return ", ".join(f"{step} {count}" for step, count in seen.items())


def lose_answers(scene: Scene, troupe: Troupe, rounds: int) -> str:
    """Commits are applied, and nobody is told: the answers to them are lost on their way."""
    applied = 0
    while troupe.counts().total() < troupe.journey.content.chunks:
        troupe.tend()
        for life in troupe.members:
            if not life.ended and life.standing:
                if life.stands_at == "records sent":
                    applied += _unanswered(scene, troupe, life)
                life.signal(signal.SIGCONT)
        time.sleep(0.01)
    assert applied >= rounds, f"{applied} commits were applied without an answer"
    return f"{applied} applied before the process knew"


def _unanswered(scene: Scene, troupe: Troupe, life: Life) -> bool:
    """Whether a ranking is out while the process that stands before its commit does not know."""
    before = len(troupe.journey.rankings.decided())
    assert scene.proxy.lose_answers(), "there were no connections"
    life.signal(signal.SIGCONT)
    troupe.until(lambda: troupe.counts().total() > before, "commit that is not answered")
    return all(line["chunk"] != before + 1 for line in life.log("chunk committed"))


def restart(scene: Scene, troupe: Troupe, times: int, end: Callable[[], None]) -> str:
    """The broker goes, and comes back when every process has noticed."""
    slowest = 0.0
    for _ in shares(troupe, times):
        before = [life.count("no broker answers") for life in troupe.members]
        end()

        def noticed(before: list[int] = before) -> bool:
            now = [life.count("no broker answers") for life in troupe.members]
            return all(n > b for n, b in zip(now, before, strict=True))

        troupe.until(noticed, "notice of it")
        scene.broker.start()
        slowest = max(slowest, troupe.advance(scene.shared.partitions))
    return f"went on in {slowest:.0f} s at most"


def faults(scene: Scene, options: Namespace) -> Iterator[Account]:
    few, rounds = options.network_times, options.network_rounds
    steps = rounds * len(STEPS)
    proxy, broker = scene.proxy, scene.broker
    yield scene.suffer("connections cut", few, lambda s, t: cut(s, t, few))
    yield scene.suffer(
        "connections cut at every step of a commit",
        steps,
        lambda s, t: at_every_step(s, t, rounds, proxy.cut),
        stand=rounds,
    )
    yield scene.suffer(
        "commits applied, their answers lost",
        rounds,
        lambda s, t: lose_answers(s, t, rounds),
        manner=OPEN,
        stand=rounds,
    )
    yield slow(scene)
    yield scene.suffer("half-open connections", few, lambda s, t: silence(s, t, few))
    yield scene.suffer(
        "half-open connections at every step of a commit",
        steps,
        lambda s, t: at_every_step(s, t, rounds, proxy.silence),
        manner=SOON,
        stand=rounds,
    )
    yield scene.suffer("broker stopped", few, lambda s, t: restart(s, t, few, broker.stop))
    yield scene.suffer("broker killed", few, lambda s, t: restart(s, t, few, broker.kill))


@contextmanager
def scene(
    folder: Path, partitions: int, chunks: int, start: Start, chance: random.Random
) -> Iterator[Scene]:
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
        alone = stack.enter_context(shared_stage(address, folder, 1, chunks, start))
        shared = stack.enter_context(shared_stage(address, folder, partitions, chunks, start))
        yield Scene(proxy, broker, alone, shared, chance)


def run(options: Namespace) -> Iterator[Account]:
    """One journey for every fault, each against an undisturbed one."""
    chance = random.Random(options.seed)
    partitions, chunks = options.network_partitions, options.network_chunks
    with (
        tempfile.TemporaryDirectory(prefix="stream-fs-campaign-") as folder,
        scene(Path(folder), partitions, chunks, Fresh, chance) as made,
    ):
        yield from faults(made, options)


def arguments(add: AddArgument) -> None:
    add("--network-times", type=int, default=3, help="times that each fault is injected")
    add("--network-rounds", type=int, default=2, help="times at every step of a commit")
    add("--network-partitions", type=int, default=4, help="partitions of the stream")
    add("--network-chunks", type=int, default=60, help="chunks in each partition")
