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
from tests.campaign.fault_result import Account, AddArgument
from tests.campaign.merge_comparison import against_the_input
from tests.campaign.process_group import QUICK, Troupe, failed, judged, undisturbed
from tests.support.recovery.content import CHUNK, FIRST_CHUNK, Content, Source, chunks_in
from tests.support.recovery.launchers import Fresh, Start
from tests.support.recovery.service_process import Life
from tests.support.recovery.stream_run import Journey, Manner
from tests.support.topics import Topics

Protocol = Literal["eager", "cooperative", "consumer"]
PROTOCOLS: tuple[Protocol, ...] = ("eager", "cooperative", "consumer")
MOST = 3
"""Members at a time, but for those that are leaving."""


class Load:
    """Feeds all partitions at random, as long as it is told to."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, chance: random.Random) -> None:
        self._sources = [Source(bootstrap, topic, n, seed=n) for n in range(partitions)]
        self._written = [0] * partitions
        self._chance = chance

    def feed(self) -> None:
        """A few chunks for most partitions, which end anywhere in a chunk."""
        for number, source in enumerate(self._sources):
            good = self._chance.randint(0, 2 * CHUNK)
            if not self._written[number]:
                good += FIRST_CHUNK
            source.write(good)
            self._written[number] += good

    @property
    def chunks(self) -> int:
        """Chunks that are full by now, in all partitions."""
        return sum(map(chunks_in, self._written))


class Churn:
    """A group that changes; `done` counts what was done to it."""

    def __init__(self, troupe: Troupe, load: Load, chance: random.Random) -> None:
        self._troupe = troupe
        self._load = load
        self._chance = chance
        self._leaving: list[Life] = []
        self.done: Counter[str] = Counter()

    def go_on(self, seconds: float) -> None:
        """Change something every few seconds; then let those that leave come to their end."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._change()
            self._load.feed()
            pause = time.monotonic() + self._chance.uniform(0.5, 8)
            while time.monotonic() < min(pause, deadline):
                self._troupe.tend()
                time.sleep(0.05)
        for life in self._leaving:
            life.expect(0)

    def _change(self) -> None:
        members = self._troupe.members
        if len(members) < MOST and (not members or self._chance.random() < 0.7):
            self._troupe.join()
            self.done["joins"] += 1
            return
        life = members.pop(self._chance.randrange(len(members)))
        # Before it hears signals it cannot leave in order.
        if self._chance.random() < 0.5 and life.log("listening"):
            life.signal(signal.SIGTERM)
            self._leaving.append(life)
            self.done["leaves"] += 1
        else:
            life.kill()
            self.done["kills"] += 1


def suffer(
    bootstrap: str,
    folder: Path,
    start: Start,
    protocol: Protocol,
    partitions: int,
    seconds: float,
    chance: random.Random,
) -> Account:
    """One journey for so many seconds, and afterwards an undisturbed one through the same input."""
    fault = f"random joins, leaves and kills, {protocol}"
    topics = Topics(bootstrap)
    topic = topics.create("membership", partitions=partitions)
    load = Load(bootstrap, topic, partitions, chance)
    properties = "" if protocol == "consumer" else QUICK  # there the broker decides
    manner = Manner(protocol=protocol, merge=True)
    where = (bootstrap, Content(topic, 0), folder, protocol, start)
    try:
        with Journey(*where, properties, manner) as journey, Troupe(journey, MOST) as troupe:
            churn = Churn(troupe, load, chance)
            try:
                churn.go_on(seconds)
                journey.content = Content(topic, load.chunks)
                while not troupe.members:
                    troupe.join()
                troupe.merge()
                found = troupe.finish()
            except (AssertionError, TimeoutError) as error:
                return failed(fault, churn.done.total(), journey, error)
        expected = undisturbed(bootstrap, journey.content, folder, start)
        merged = against_the_input(bootstrap, journey.config, found.rankings)
    finally:
        topics.remove()
    shown = [", ".join(f"{n} {what}" for what, n in churn.done.items())]
    return judged(fault, churn.done.total(), found, expected, shown, merged)


def run(options: Namespace) -> Iterator[Account]:
    """One journey for every protocol."""
    chance = random.Random(options.seed)
    with (
        tempfile.TemporaryDirectory(prefix="stream-fs-campaign-") as folder,
        running_broker() as broker,
    ):
        for protocol in PROTOCOLS:
            yield suffer(
                broker.bootstrap,
                Path(folder),
                Fresh,
                protocol,
                options.membership_partitions,
                options.membership_seconds,
                chance,
            )


def arguments(add: AddArgument) -> None:
    add("--membership-partitions", type=int, default=6, help="partitions of the stream")
    add("--membership-seconds", type=float, default=180.0, help="for each protocol")
