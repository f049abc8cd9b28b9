"""The process that merges killed at every step of publishing a merged ranking."""

from __future__ import annotations

import json
import signal
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from stream_fs.broker import running_broker
from tests.campaign.fault_result import Account, AddArgument
from tests.campaign.merge_comparison import against_the_input, merged_rankings
from tests.campaign.process_group import Troupe, failed, judged, undisturbed
from tests.support.recovery.content import (
    CHUNK,
    SNAPSHOT_EVERY,
    Content,
    Source,
    has_snapshot,
    records_for,
)
from tests.support.recovery.faulty_service import MERGE_STEPS, Moment
from tests.support.recovery.launchers import Fresh, Start
from tests.support.recovery.stream_run import SAME_MEMBER, Journey, Manner
from tests.support.topics import Topics

PARTITIONS = 2
MORE = SNAPSHOT_EVERY + 1
"""Chunks for each partition and life, so that each life has new snapshots to merge."""


def suffer(bootstrap: str, folder: Path, start: Start, step: str, rounds: int) -> Account:
    """So many lives that end at the first such step; and one that comes to the end of the input."""
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
        with Journey(*where, SAME_MEMBER, Manner(merge=True)) as journey:
            try:
                for _ in range(rounds):
                    write()
                    journey.start(Moment(step, 1)).expect(-signal.SIGKILL)
                write()
                journey.content = Content(topic, PARTITIONS * written)
                last = max(filter(has_snapshot, range(written + 1)))
                with Troupe(journey, 1) as troupe:
                    troupe.until(lambda: merged_up_to(journey) >= last, f"a merge of {last}")
                    found = troupe.finish()
            except (AssertionError, TimeoutError) as error:
                return failed(fault, rounds, journey, error)
        expected = undisturbed(bootstrap, journey.content, folder, start)
        compared = against_the_input(bootstrap, journey.config, found.rankings)
    finally:
        topics.remove()
    return judged(fault, rounds, found, expected, merged=compared)


def merged_up_to(journey: Journey) -> int:
    """The chunk that every partition has come to in the newest merged ranking."""
    journey.published()
    merged = merged_rankings(journey.rankings.messages)
    sources = json.loads(merged[-1].value or b"")["sources"] if merged else []
    return min((s["sequence"] for s in sources), default=0) if len(sources) == PARTITIONS else 0


def run(options: Namespace) -> Iterator[Account]:
    """One journey for every step."""
    with (
        tempfile.TemporaryDirectory(prefix="stream-fs-campaign-") as folder,
        running_broker() as broker,
    ):
        for step in MERGE_STEPS:
            yield suffer(broker.bootstrap, Path(folder), Fresh, step, options.merge_rounds)


def arguments(add: AddArgument) -> None:
    add("--merge-rounds", type=int, default=4, help="SIGKILLs at every step of a merge")
