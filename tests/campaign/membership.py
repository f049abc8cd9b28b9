"""Members of a group that join, leave and are killed at random, in every rebalance protocol."""

from __future__ import annotations

import random
import signal
import tempfile
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from stream_fs.broker import running_broker
from tests.campaign.fault_result import AddArgument, FaultResult
from tests.campaign.merge_comparison import compare_with_input
from tests.campaign.process_group import (
    QUICK,
    ProcessGroup,
    compare_run,
    failed_result,
    undisturbed,
)
from tests.support.recovery.content import CHUNK, FIRST_CHUNK, Content, Source, chunks_in
from tests.support.recovery.launchers import Launcher, Spawned
from tests.support.recovery.service_process import ServiceProcess
from tests.support.recovery.stream_run import RunSettings, StreamRun
from tests.support.topics import Topics

Protocol = Literal["eager", "cooperative", "consumer"]
PROTOCOLS: tuple[Protocol, ...] = ("eager", "cooperative", "consumer")
MOST = 3
"""Members at a time, without those that are leaving."""


class RandomInput:
    """Writes random numbers of records to all partitions."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, chance: random.Random) -> None:
        self._sources = [Source(bootstrap, topic, n, seed=n) for n in range(partitions)]
        self._written = [0] * partitions
        self._chance = chance

    def feed(self) -> None:
        """Write up to two chunks to each partition, ending anywhere in a chunk."""
        for number, source in enumerate(self._sources):
            good = self._chance.randint(0, 2 * CHUNK)
            if not self._written[number]:
                good += FIRST_CHUNK
            source.write(good)
            self._written[number] += good

    @property
    def chunks(self) -> int:
        """Full chunks in all partitions so far."""
        return sum(map(chunks_in, self._written))


class Churn:
    """Members that join, leave and are killed; `done` counts these events."""

    def __init__(
        self, group: ProcessGroup, random_input: RandomInput, chance: random.Random
    ) -> None:
        self._group = group
        self._input = random_input
        self._chance = chance
        self._leaving: list[ServiceProcess] = []
        self.done: Counter[str] = Counter()

    def go_on(self, seconds: float) -> None:
        """Change the group every few seconds; then wait for the end of members that leave."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._change()
            self._input.feed()
            pause = time.monotonic() + self._chance.uniform(0.5, 8)
            while time.monotonic() < min(pause, deadline):
                self._group.restart_ended()
                time.sleep(0.05)
        for process in self._leaving:
            process.expect(0)

    def _change(self) -> None:
        members = self._group.members
        if len(members) < MOST and (not members or self._chance.random() < 0.7):
            self._group.join()
            self.done["joins"] += 1
            return
        process = members.pop(self._chance.randrange(len(members)))
        # Until it handles signals it cannot shut down gracefully.
        if self._chance.random() < 0.5 and process.log("listening"):
            process.signal(signal.SIGTERM)
            self._leaving.append(process)
            self.done["leaves"] += 1
        else:
            process.kill()
            self.done["kills"] += 1


def run_fault(
    bootstrap: str,
    folder: Path,
    start: Launcher,
    protocol: Protocol,
    partitions: int,
    seconds: float,
    chance: random.Random,
) -> FaultResult:
    """Compare a run of so many seconds with an undisturbed one through the same input."""
    fault = f"random joins, leaves and kills, {protocol}"
    topics = Topics(bootstrap)
    topic = topics.create("membership", partitions=partitions)
    random_input = RandomInput(bootstrap, topic, partitions, chance)
    properties = "" if protocol == "consumer" else QUICK  # there the broker decides
    run_settings = RunSettings(protocol=protocol, merge=True)
    where = (bootstrap, Content(topic, 0), folder, protocol, start)
    try:
        with (
            StreamRun(*where, properties, run_settings) as stream_run,
            ProcessGroup(stream_run, MOST) as group,
        ):
            churn = Churn(group, random_input, chance)
            try:
                churn.go_on(seconds)
                stream_run.content = Content(topic, random_input.chunks)
                while not group.members:
                    group.join()
                group.merge()
                found = group.finish()
            except (AssertionError, TimeoutError) as error:
                return failed_result(fault, churn.done.total(), stream_run, error)
        expected = undisturbed(bootstrap, stream_run.content, folder, start)
        merged = compare_with_input(bootstrap, stream_run.config, found.rankings)
    finally:
        topics.remove()
    shown = [", ".join(f"{n} {what}" for what, n in churn.done.items())]
    return compare_run(fault, churn.done.total(), found, expected, shown, merged)


def run(options: Namespace) -> Iterator[FaultResult]:
    """One run for every protocol."""
    chance = random.Random(options.seed)
    with (
        tempfile.TemporaryDirectory(prefix="stream-fs-campaign-") as folder,
        running_broker() as broker,
    ):
        for protocol in PROTOCOLS:
            yield run_fault(
                broker.bootstrap,
                Path(folder),
                Spawned,
                protocol,
                options.membership_partitions,
                options.membership_seconds,
                chance,
            )


def arguments(add: AddArgument) -> None:
    add("--membership-partitions", type=int, default=6, help="partitions of the stream")
    add("--membership-seconds", type=float, default=180.0, help="for each protocol")
