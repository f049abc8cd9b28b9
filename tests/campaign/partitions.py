"""Partitions added to the input topic while the service runs.

The state topic has to get as many, with `stream-fs topics create`, before or after. Until then the
new partitions wait, and the others go on.
"""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from stream_fs.broker import running_broker
from tests.campaign.fault_result import Account, AddArgument
from tests.campaign.membership import PROTOCOLS, Protocol
from tests.campaign.merge_comparison import against_the_input
from tests.campaign.process_group import QUICK, Troupe, failed, judged, undisturbed
from tests.support.recovery.content import CHUNK, Content, Source, records_for
from tests.support.recovery.launchers import Fresh, Start
from tests.support.recovery.stream_run import Journey, Manner, make_topics
from tests.support.topics import Topics

FRESH = '"topic.metadata.refresh.interval.ms" = 2000'
"""How soon members of a classic group hear of partitions; by default within five minutes."""
WAITS = "stream-fs topics create"
"""What a process says while a partition has no state."""


def suffer(
    bootstrap: str, folder: Path, start: Start, protocol: Protocol, chunks: int, *, after: bool
) -> Account:
    """Two partitions become five; their state is made `after` they are, or before."""
    fault = f"partitions added {'before' if after else 'after'} their state, {protocol}"
    topics = Topics(bootstrap)
    topic = topics.create("growing", partitions=2)
    properties = FRESH if protocol == "consumer" else f"{QUICK}, {FRESH}"
    name = f"{protocol}-{'after' if after else 'before'}"
    where = (bootstrap, Content(topic, 2 * chunks), folder, name, start)
    sources = [Source(bootstrap, topic, number, seed=number) for number in range(2)]
    try:
        for source in sources:
            source.write(records_for(chunks))
        with Journey(*where, properties, Manner(protocol=protocol, merge=True)) as journey:
            try:
                with Troupe(journey) as troupe:
                    troupe.reach(2)
                    if not after:
                        topics.grow(journey.topic("state"), 5)
                    topics.grow(topic, 5)
                    sources += [Source(bootstrap, topic, n, seed=n) for n in range(2, 5)]
                    for number, source in enumerate(sources):
                        source.write(records_for(chunks) if number > 1 else CHUNK * chunks)
                    if after:
                        wait(troupe, chunks)
                    journey.content = Content(topic, (2 * 2 + 3) * chunks)
                    troupe.merge()
                    found = troupe.finish()
            except (AssertionError, TimeoutError) as error:
                return failed(fault, 1, journey, error)
        expected = undisturbed(bootstrap, journey.content, folder, start)
        merged = against_the_input(bootstrap, journey.config, found.rankings)
    finally:
        topics.remove()
    return judged(fault, 1, found, expected, merged=merged)


def wait(troupe: Troupe, chunks: int) -> None:
    """Without their state the new ones wait, also in a process that starts; the others go on."""
    troupe.until(lambda: any(life.count(WAITS) for life in troupe.members), "word of it")
    troupe.members.pop().stop()
    late = troupe.join()
    troupe.until(lambda: bool(late.log("task is restoring")), "work of the new process")
    troupe.reach(2 * 2 * chunks)
    assert set(troupe.counts()) == {0, 1}
    make_topics(troupe.journey.config)


def run(options: Namespace) -> Iterator[Account]:
    """One journey for every protocol and order."""
    with (
        tempfile.TemporaryDirectory(prefix="stream-fs-campaign-") as folder,
        running_broker() as broker,
    ):
        for protocol in PROTOCOLS:
            for after in (True, False):
                chunks = options.growing_chunks
                where = (broker.bootstrap, Path(folder), Fresh)
                yield suffer(*where, protocol, chunks, after=after)


def arguments(add: AddArgument) -> None:
    add("--growing-chunks", type=int, default=20, help="chunks in each partition")
