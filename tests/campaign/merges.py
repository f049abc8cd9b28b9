"""The process that merges killed at every step of publishing a merged ranking."""

from __future__ import annotations

import json
import signal
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from stream_fs.broker import running_broker
from tests.campaign.fault_result import AddArgument, FaultResult
from tests.campaign.merge_comparison import compare_with_input, merged_rankings
from tests.campaign.process_group import ProcessGroup, compare_run, failed_result, undisturbed
from tests.support.recovery.content import (
    CHUNK,
    SNAPSHOT_EVERY,
    Content,
    Source,
    has_snapshot,
    records_for,
)
from tests.support.recovery.faulty_service import MERGE_STEPS, FaultPoint
from tests.support.recovery.launchers import Launcher, Spawned
from tests.support.recovery.stream_run import SAME_MEMBER, RunSettings, StreamRun
from tests.support.topics import Topics

PARTITIONS = 2
MORE = SNAPSHOT_EVERY + 1
"""Chunks for each partition and process, so that each process has new snapshots to merge."""


def run_fault(bootstrap: str, folder: Path, start: Launcher, step: str, rounds: int) -> FaultResult:
    """Kill so many processes at their first such step; another one runs to the end."""
    fault = f"SIGKILL when {step}"
    topics = Topics(bootstrap)
    topic = topics.create("merges", partitions=PARTITIONS)
    sources = [Source(bootstrap, topic, number, seed=number) for number in range(PARTITIONS)]
    where = (bootstrap, Content(topic, 0), folder, step.replace(" ", "-"), start)
    written = 0

    def write() -> None:
        nonlocal written
        for source in sources:
            source.write(CHUNK * MORE if written else records_for(MORE))
        written += MORE

    try:
        with StreamRun(*where, SAME_MEMBER, RunSettings(merge=True)) as stream_run:
            try:
                for _ in range(rounds):
                    write()
                    stream_run.start(FaultPoint(step, 1)).expect(-signal.SIGKILL)
                write()
                stream_run.content = Content(topic, PARTITIONS * written)
                last = max(filter(has_snapshot, range(written + 1)))
                with ProcessGroup(stream_run, 1) as group:
                    group.until(lambda: merged_up_to(stream_run) >= last, f"a merge of {last}")
                    found = group.finish()
            except (AssertionError, TimeoutError) as error:
                return failed_result(fault, rounds, stream_run, error)
        expected = undisturbed(bootstrap, stream_run.content, folder, start)
        compared = compare_with_input(bootstrap, stream_run.config, found.rankings)
    finally:
        topics.remove()
    return compare_run(fault, rounds, found, expected, merged=compared)


def merged_up_to(stream_run: StreamRun) -> int:
    """The least chunk of any partition in the newest merged ranking."""
    stream_run.published()
    merged = merged_rankings(stream_run.rankings.messages)
    sources = json.loads(merged[-1].value or b"")["sources"] if merged else []
    return min((s["sequence"] for s in sources), default=0) if len(sources) == PARTITIONS else 0


def run(options: Namespace) -> Iterator[FaultResult]:
    """One run for every step."""
    with (
        tempfile.TemporaryDirectory(prefix="stream-fs-campaign-") as folder,
        running_broker() as broker,
    ):
        for step in MERGE_STEPS:
            yield run_fault(broker.bootstrap, Path(folder), Spawned, step, options.merge_rounds)


def arguments(add: AddArgument) -> None:
    add("--merge-rounds", type=int, default=4, help="SIGKILLs at every step of a merge")
