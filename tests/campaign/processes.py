"""Processes that oversleep, come twice, and lack memory, disk or the right time."""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from stream_fs.broker import running_broker
from tests.campaign import full_disk, suspension
from tests.campaign.fault_result import Account, AddArgument
from tests.campaign.memory_shortage import run_out_of_memory
from tests.support.recovery.comparison import Comparison, Published
from tests.support.recovery.faulty_service import STEPS
from tests.support.recovery.launchers import Fresh
from tests.support.recovery.prepared_stream import Stage, stage
from tests.support.recovery.process_faults import JUMP_CHUNKS
from tests.support.recovery.stream_run import SAME_MEMBER, Journey
from tests.support.recovery.subscriber import problems

JUMP_SECONDS = 5 * 3600.0
"""More than the hour that brokers let a timestamp lie in the future."""
DISK_CHUNKS, DISK_BYTES = 40, 40_960
"""Of a replay, and the room that it gets at a time: a multiple of a page."""


class Fault(NamedTuple):
    """What journeys suffer, how often each, and as what kind of member; `inflict` tells more."""

    name: str
    times: int
    inflict: Callable[[Journey], str]
    properties: str = SAME_MEMBER
    settings: Sequence[str] = ()


def jump(journey: Journey, chunks: int) -> str:
    """A life in a time that jumps."""
    life = journey.start(more=["--clock", str(JUMP_SECONDS)])
    journey.reach(life, journey.published() + chunks)
    life.stop()
    return "±5 h every 3 chunks"


def oversleeping(steps: Sequence[str]) -> Iterator[Fault]:
    """Stopped until the group has given it up, at each of these steps."""
    for step in steps:
        for kind, properties in (("", suspension.NAMELESS), (", named", suspension.NAMED)):
            inflict = partial(suspension.oversleep, step=step)
            name = f"SIGSTOP past the session when {step}{kind}, SIGCONT"
            yield Fault(name, 1, inflict, properties, suspension.SETTINGS)
        inflict = partial(suspension.oversleep_and_be_replaced, step=step)
        name = f"SIGSTOP past the session when {step}, replaced, SIGCONT"
        yield Fault(name, 1, inflict, suspension.NAMELESS, suspension.SETTINGS)


def faults() -> Iterator[Fault]:
    """All of them but for the disk's."""
    yield from oversleeping([step for step in STEPS if step != "snapshot sent"])
    yield Fault("two with one name", 1, suspension.twins, suspension.NAMED)
    yield Fault("two without a name", 1, suspension.spare, suspension.NAMELESS)
    yield Fault("an allocation fails", len(STEPS), partial(run_out_of_memory, what="MEMORY"))
    yield Fault("no memory is left", len(STEPS), partial(run_out_of_memory, what="HOG"))
    yield Fault("the clock jumps", 30 // JUMP_CHUNKS, partial(jump, chunks=30))


def suffer(staged: Stage, fault: Fault, name: str, rounds: int = 1) -> Account:
    """So many journeys; what is told of them, each thing once."""
    compared: list[tuple[Comparison, Comparison]] = []
    shown: set[str] = set()
    wrong: list[str] = []
    for number in range(rounds):
        with staged.journey(f"{name}-{number}", fault.properties, fault.settings) as journey:
            try:
                shown.add(fault.inflict(journey))
                found = journey.complete()
                wrong += problems(message.value for message in found.rankings)
            except (AssertionError, TimeoutError) as error:
                found = Published(journey.rankings.messages, journey.letters.messages)
                wrong.append(str(error))
        compared.append(found.against(staged.expected))
    rankings, letters = (sum(all_of[1:], all_of[0]) for all_of in zip(*compared, strict=True))
    told = ", ".join(sorted(shown))
    return Account(fault.name, rounds * fault.times, rankings, letters, told, tuple(wrong))


def lack_room(folder: Path, chunks: int = DISK_CHUNKS, room: int = DISK_BYTES) -> Iterator[Account]:
    """A replay whose files may grow no more, and one on a disk that is full."""
    make = full_disk.replays(folder, chunks)
    undisturbed = make("undisturbed")
    assert not full_disk.is_told(undisturbed.run())
    limited = make("limited")
    times = full_disk.meet_limits(limited, room)
    yield Account(
        "replay: a file may not grow", times, limited.against(undisturbed), shown="exit 6"
    )
    small = make("small")
    name = "replay: the disk is full"
    with full_disk.small_disk(small.folder, room) as reason:
        if reason is None:
            times = full_disk.fill(small, room)
            compared = small.against(undisturbed)
            yield Account(name, times, compared, shown="exit 6")
        else:  # where one may not mount
            yield Account(name, 0, not_run=" ".join(reason.split()))


def run(options: Namespace) -> Iterator[Account]:
    """One journey for every fault, each against an undisturbed one."""
    with tempfile.TemporaryDirectory(prefix="stream-fs-disk-") as folder:
        yield from lack_room(Path(folder))
    with (
        tempfile.TemporaryDirectory(prefix="stream-fs-processes-") as folder,
        running_broker() as broker,
        stage(broker, Path(folder), options.process_chunks, Fresh) as staged,
    ):
        for number, fault in enumerate(faults()):
            yield suffer(staged, fault, f"process-{number}", options.process_rounds)


def arguments(add: AddArgument) -> None:
    add("--process-rounds", type=int, default=2, help="journeys for every fault")
    add("--process-chunks", type=int, default=60, help="chunks in the stream")
