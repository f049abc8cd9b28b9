"""Processes killed at every step of a commit and at random, stopped, overtaken and ended."""

from __future__ import annotations

import random
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from stream_fs.broker import running_broker
from tests.campaign.fault_result import Account, AddArgument
from tests.support.recovery.comparison import Published
from tests.support.recovery.crashes import (
    POINTS,
    Point,
    end_randomly,
    kill_at,
    kill_randomly,
    kill_together,
    overtake,
    stop_often,
)
from tests.support.recovery.faulty_service import STEPS
from tests.support.recovery.launchers import Fresh
from tests.support.recovery.prepared_stream import Stage, stage
from tests.support.recovery.stream_run import Journey
from tests.support.recovery.subscriber import problems

STOP_CHUNKS = 6
"""Between orderly ends: no multiple of the chunks between snapshots."""


class Fault(NamedTuple):
    """What a journey suffers, and how often."""

    name: str
    times: int
    inflict: Callable[[Journey], None]


def kill_again_and_again(journey: Journey, point: Point, times: int) -> None:
    committed = 0
    for _ in range(times):
        committed = kill_at(journey, point, committed)


def kill_together_again_and_again(journey: Journey, step: str, times: int) -> None:
    for _ in range(times):
        kill_together(journey, step, 2)


def overtake_again_and_again(journey: Journey, times: int) -> None:
    for _ in range(times):
        overtake(journey)


def faults(options: Namespace) -> Iterator[Fault]:
    """All of them; what chance decides follows from the seed."""
    chance = random.Random(options.seed)
    for point in POINTS:
        inflict = partial(kill_again_and_again, point=point, times=options.rounds)
        yield Fault(f"SIGKILL when {point}", options.rounds, inflict)
    for step in STEPS:
        inflict = partial(kill_together_again_and_again, step=step, times=options.rounds)
        yield Fault(f"SIGKILL when {step}, of several chunks", options.rounds, inflict)
    few = max(1, options.kills // 5)
    at_random = partial(kill_randomly, kills=options.kills, chance=chance)
    yield Fault("SIGKILL at random", options.kills, at_random)
    at_the_end = partial(end_randomly, times=few, chance=chance)
    yield Fault("SIGKILL while it ends", few, at_the_end)
    yield Fault("SIGSTOP, overtaken, SIGCONT", few, partial(overtake_again_and_again, times=few))
    yield Fault("SIGTERM", few, partial(stop_often, times=few, chunks=STOP_CHUNKS))


def suffer(staged: Stage, fault: Fault, number: int) -> Account:
    """One journey."""
    with staged.journey(f"fault-{number}") as journey:
        try:
            fault.inflict(journey)
            found = journey.complete()
            wrong = problems(message.value for message in found.rankings)
        except (AssertionError, TimeoutError) as error:
            found = Published(journey.rankings.messages, journey.letters.messages)
            wrong = [str(error)]
    rankings, letters = found.against(staged.expected)
    return Account(fault.name, fault.times, rankings, letters, problems=tuple(wrong))


def run(options: Namespace) -> Iterator[Account]:
    """One journey for every fault, each against an undisturbed one."""
    with (
        tempfile.TemporaryDirectory(prefix="stream-fs-recovery-") as folder,
        running_broker() as broker,
        stage(broker, Path(folder), options.chunks, Fresh) as staged,
    ):
        for number, fault in enumerate(faults(options)):
            yield suffer(staged, fault, number)


def arguments(add: AddArgument) -> None:
    add("--kills", type=int, default=25, help="SIGKILLs at random moments")
    add("--rounds", type=int, default=3, help="SIGKILLs at every fault point")
    add("--chunks", type=int, default=200, help="chunks in the stream")
