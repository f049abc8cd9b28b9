"""The short form of the faults of single processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from stream_fs.broker import Broker
from tests.campaign import full_disk, processes, suspension
from tests.campaign.fault_result import FaultResult
from tests.campaign.memory_shortage import run_out_of_memory
from tests.campaign.processes import Fault, jump, run_fault, run_without_space
from tests.support.recovery.launchers import Forked
from tests.support.recovery.prepared_stream import PreparedStream, prepare_stream

CHUNKS = 24

FAULTS = [
    Fault(
        "stopped past the session",
        1,
        partial(suspension.stop_past_session, step="records sent"),
        suspension.DYNAMIC_MEMBER,
        suspension.SETTINGS,
    ),
    Fault(
        "replaced",
        1,
        partial(suspension.replace_stopped_past_session, step="updated"),
        suspension.DYNAMIC_MEMBER,
        suspension.SETTINGS,
    ),
    Fault(
        "two with one group.instance.id",
        1,
        suspension.start_same_member_twice,
        suspension.STATIC_MEMBER,
    ),
    Fault(
        "an allocation fails",
        2,
        partial(run_out_of_memory, kind="MEMORY_ERROR", steps=("records sent", "committed")),
    ),
    Fault("no memory is left", 1, partial(run_out_of_memory, kind="NO_MEMORY", steps=("updated",))),
    Fault("the clock jumps", 4, partial(jump, chunks=14)),
]


@pytest.fixture(scope="module")
def prepared(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PreparedStream]:
    with prepare_stream(broker, tmp_path_factory.mktemp("processes"), CHUNKS, Forked) as made:
        yield made


def assert_passed(result: FaultResult) -> None:
    assert result.passed, (result.compared, result.shown, *result.problems)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_a_fault_changes_no_published_byte(prepared: PreparedStream, fault: Fault) -> None:
    assert_passed(run_fault(prepared, fault, f"short-{FAULTS.index(fault)}"))


def test_a_replay_without_disk_space_continues_when_there_is_some(tmp_path: Path) -> None:
    limited, full = run_without_space(tmp_path, chunks=12, room=49_152)
    assert_passed(limited)
    if not full.not_run:
        assert_passed(full)


def test_the_table_gives_the_reason_when_no_disk_can_be_mounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def no_disk(_: Path, __: int) -> Iterator[str]:
        yield "mount: only root\ncan do that"

    monkeypatch.setattr(full_disk, "small_disk", no_disk)
    _, full = run_without_space(tmp_path, chunks=2, room=1 << 20)
    assert full.cells("processes")[9] == "not run: mount: only root can do that"
    assert not full.passed


def test_processes_are_stopped_past_their_session_at_every_step() -> None:
    names = [fault.name for fault in processes.faults()]
    assert len(names) == len(set(names))
    for step in ("updated", "begun", "records sent", "committed", "advised"):
        assert sum(f"when {step}" in name for name in names) == 3
