"""Partitions added to the input topic while the service runs.

The state topic must get as many, with `stream-fs topics create`, before or after. Until then the
new partitions wait, and the others advance.
"""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from stream_fs.broker import running_broker
from tests.campaign.fault_result import AddArgument, FaultResult
from tests.campaign.membership import PROTOCOLS, Protocol
from tests.campaign.merge_comparison import compare_with_input
from tests.campaign.process_group import (
    QUICK,
    ProcessGroup,
    compare_run,
    failed_result,
    undisturbed,
)
from tests.support.recovery.content import CHUNK, Content, Source, records_for
from tests.support.recovery.launchers import Launcher, Spawned
from tests.support.recovery.stream_run import RunSettings, StreamRun, make_topics
from tests.support.topics import Topics

FRESH = '"topic.metadata.refresh.interval.ms" = 2000'
"""How soon members of a classic group notice new partitions; by default within five minutes."""
WAITS = "stream-fs topics create"
"""In the log while a partition has no state."""


def run_fault(
    bootstrap: str, folder: Path, start: Launcher, protocol: Protocol, chunks: int, *, after: bool
) -> FaultResult:
    """Add three partitions to two; their state is created `after` them, or before."""
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
        with StreamRun(
            *where, properties, RunSettings(protocol=protocol, merge=True)
        ) as stream_run:
            try:
                with ProcessGroup(stream_run) as group:
                    group.reach(2)
                    if not after:
                        topics.grow(stream_run.topic("state"), 5)
                    topics.grow(topic, 5)
                    sources += [Source(bootstrap, topic, n, seed=n) for n in range(2, 5)]
                    for number, source in enumerate(sources):
                        source.write(records_for(chunks) if number > 1 else CHUNK * chunks)
                    if after:
                        wait(group, chunks)
                    stream_run.content = Content(topic, (2 * 2 + 3) * chunks)
                    group.merge()
                    found = group.finish()
            except (AssertionError, TimeoutError) as error:
                return failed_result(fault, 1, stream_run, error)
        expected = undisturbed(bootstrap, stream_run.content, folder, start)
        merged = compare_with_input(bootstrap, stream_run.config, found.rankings)
    finally:
        topics.remove()
    return compare_run(fault, 1, found, expected, merged=merged)


def wait(group: ProcessGroup, chunks: int) -> None:
    """Check that partitions without state wait, also in a new process, and others advance."""
    group.until(
        lambda: any(process.count(WAITS) for process in group.members), "log line of missing state"
    )
    group.members.pop().stop()
    stopped_process = group.join()
    group.until(
        lambda: bool(stopped_process.log("task is restoring")), "restore in the new process"
    )
    group.reach(2 * 2 * chunks)
    assert set(group.counts()) == {0, 1}
    make_topics(group.stream_run.config)


def run(options: Namespace) -> Iterator[FaultResult]:
    """One run for every protocol and order."""
    with (
        tempfile.TemporaryDirectory(prefix="stream-fs-campaign-") as folder,
        running_broker() as broker,
    ):
        for protocol in PROTOCOLS:
            for after in (True, False):
                chunks = options.growing_chunks
                where = (broker.bootstrap, Path(folder), Spawned)
                yield run_fault(*where, protocol, chunks, after=after)


def arguments(add: AddArgument) -> None:
    add("--growing-chunks", type=int, default=20, help="chunks in each partition")
