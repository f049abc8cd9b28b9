"""Processes stopped past their session, started twice, or short of memory, disk or time."""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from stream_fs.broker import running_broker
from tests.campaign import full_disk, suspension
from tests.campaign.fault_result import AddArgument, FaultResult
from tests.campaign.memory_shortage import run_out_of_memory
from tests.support.recovery.comparison import Comparison, Published
from tests.support.recovery.faulty_service import STEPS
from tests.support.recovery.launchers import Spawned
from tests.support.recovery.prepared_stream import PreparedStream, prepare_stream
from tests.support.recovery.process_faults import JUMP_CHUNKS
from tests.support.recovery.stream_run import SAME_MEMBER, StreamRun
from tests.support.recovery.subscriber import problems

JUMP_SECONDS = 5 * 3600.0
"""More than the hour that brokers accept for a timestamp in the future."""
DISK_CHUNKS, DISK_BYTES = 40, 40_960
"""Chunks of a replay, and the disk space it gets at a time: a multiple of a page."""


class Fault(NamedTuple):
    """A fault of a run, how often it occurs, and the kind of member; `inject` returns a remark."""

    name: str
    times: int
    inject: Callable[[StreamRun], str]
    properties: str = SAME_MEMBER
    settings: Sequence[str] = ()


def jump(stream_run: StreamRun, chunks: int) -> str:
    """Run a process whose clock jumps."""
    process = stream_run.start(more=["--clock", str(JUMP_SECONDS)])
    stream_run.reach(process, stream_run.published() + chunks)
    process.stop()
    return "±5 h every 3 chunks"


def session_faults(steps: Sequence[str]) -> Iterator[Fault]:
    """Stops past the session at each of these steps."""
    for step in steps:
        for kind, properties in (
            ("", suspension.DYNAMIC_MEMBER),
            (", static member", suspension.STATIC_MEMBER),
        ):
            inject = partial(suspension.stop_past_session, step=step)
            name = f"SIGSTOP past the session when {step}{kind}, SIGCONT"
            yield Fault(name, 1, inject, properties, suspension.SETTINGS)
        inject = partial(suspension.replace_stopped_past_session, step=step)
        name = f"SIGSTOP past the session when {step}, replaced, SIGCONT"
        yield Fault(name, 1, inject, suspension.DYNAMIC_MEMBER, suspension.SETTINGS)


def faults() -> Iterator[Fault]:
    """All faults except those of the disk."""
    yield from session_faults([step for step in STEPS if step != "snapshot sent"])
    yield Fault(
        "two with one group.instance.id",
        1,
        suspension.start_same_member_twice,
        suspension.STATIC_MEMBER,
    )
    yield Fault("two dynamic members", 1, suspension.kill_one_of_two, suspension.DYNAMIC_MEMBER)
    yield Fault("an allocation fails", len(STEPS), partial(run_out_of_memory, kind="MEMORY_ERROR"))
    yield Fault("no memory is left", len(STEPS), partial(run_out_of_memory, kind="NO_MEMORY"))
    yield Fault("the clock jumps", 30 // JUMP_CHUNKS, partial(jump, chunks=30))


def run_fault(prepared: PreparedStream, fault: Fault, name: str, rounds: int = 1) -> FaultResult:
    """Inject a fault into so many runs; the result has each remark once."""
    compared: list[tuple[Comparison, Comparison]] = []
    shown: set[str] = set()
    wrong: list[str] = []
    for number in range(rounds):
        with prepared.new_run(f"{name}-{number}", fault.properties, fault.settings) as stream_run:
            try:
                shown.add(fault.inject(stream_run))
                found = stream_run.complete()
                wrong += problems(message.value for message in found.rankings)
            except (AssertionError, TimeoutError) as error:
                found = Published(stream_run.rankings.messages, stream_run.letters.messages)
                wrong.append(str(error))
        compared.append(found.against(prepared.expected))
    rankings, letters = (sum(all_of[1:], all_of[0]) for all_of in zip(*compared, strict=True))
    shown_text = ", ".join(sorted(shown))
    return FaultResult(
        fault.name, rounds * fault.times, rankings, letters, shown_text, tuple(wrong)
    )


def run_without_space(
    folder: Path, chunks: int = DISK_CHUNKS, room: int = DISK_BYTES
) -> Iterator[FaultResult]:
    """A replay with a limit on file sizes, and one on a full disk."""
    make = full_disk.replays(folder, chunks)
    undisturbed = make("undisturbed")
    assert not full_disk.ended_without_space(undisturbed.run())
    limited = make("limited")
    times = full_disk.run_with_file_size_limit(limited, room)
    yield FaultResult(
        "replay: file size limit", times, limited.against(undisturbed), shown="exit 6"
    )
    small = make("small")
    name = "replay: the disk is full"
    with full_disk.small_disk(small.folder, room) as reason:
        if reason is None:
            times = full_disk.run_on_small_disk(small, room)
            compared = small.against(undisturbed)
            yield FaultResult(name, times, compared, shown="exit 6")
        else:  # no permission to mount
            yield FaultResult(name, 0, not_run=" ".join(reason.split()))


def run(options: Namespace) -> Iterator[FaultResult]:
    """One run for every fault, each against an undisturbed one."""
    with tempfile.TemporaryDirectory(prefix="stream-fs-disk-") as folder:
        yield from run_without_space(Path(folder))
    with (
        tempfile.TemporaryDirectory(prefix="stream-fs-processes-") as folder,
        running_broker() as broker,
        prepare_stream(broker, Path(folder), options.process_chunks, Spawned) as prepared,
    ):
        for number, fault in enumerate(faults()):
            yield run_fault(prepared, fault, f"process-{number}", options.process_rounds)


def arguments(add: AddArgument) -> None:
    add("--process-rounds", type=int, default=2, help="runs for every fault")
    add("--process-chunks", type=int, default=60, help="chunks in the stream")
