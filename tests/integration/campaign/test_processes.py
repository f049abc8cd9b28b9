"""A process that oversleeps, comes twice, or lacks memory, disk or the right time, in short."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from stream_fs.broker import Broker
from tests.campaign import full_disk, processes, suspension
from tests.campaign.fault_result import Account
from tests.campaign.memory_shortage import run_out_of_memory
from tests.campaign.processes import Fault, jump, lack_room, suffer
from tests.support.recovery.launchers import Forked
from tests.support.recovery.prepared_stream import Stage, stage

CHUNKS = 24

FAULTS = [
    Fault(
        "overslept",
        1,
        partial(suspension.oversleep, step="records sent"),
        suspension.NAMELESS,
        suspension.SETTINGS,
    ),
    Fault(
        "replaced",
        1,
        partial(suspension.oversleep_and_be_replaced, step="updated"),
        suspension.NAMELESS,
        suspension.SETTINGS,
    ),
    Fault("two with one name", 1, suspension.twins, suspension.NAMED),
    Fault(
        "an allocation fails",
        2,
        partial(run_out_of_memory, what="MEMORY", steps=("records sent", "committed")),
    ),
    Fault("no memory is left", 1, partial(run_out_of_memory, what="HOG", steps=("updated",))),
    Fault("the clock jumps", 4, partial(jump, chunks=14)),
]


@pytest.fixture(scope="module")
def staged(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(broker, tmp_path_factory.mktemp("processes"), CHUNKS, Forked) as made:
        yield made


def is_right(account: Account) -> None:
    assert account.right, (account.compared, account.shown, *account.problems)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_it_changes_no_byte(staged: Stage, fault: Fault) -> None:
    is_right(suffer(staged, fault, f"short-{FAULTS.index(fault)}"))


def test_a_replay_without_room_goes_on_when_there_is_some(tmp_path: Path) -> None:
    limited, full = lack_room(tmp_path, chunks=12, room=49_152)
    is_right(limited)
    if not full.not_run:
        is_right(full)


def test_where_no_disk_can_be_made_the_table_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def no_disk(_: Path, __: int) -> Iterator[str]:
        yield "mount: only root\ncan do that"

    monkeypatch.setattr(full_disk, "small_disk", no_disk)
    _, full = lack_room(tmp_path, chunks=2, room=1 << 20)
    assert full.cells("processes")[9] == "not run: mount: only root can do that"
    assert not full.right


def test_every_step_of_a_commit_is_overslept() -> None:
    names = [fault.name for fault in processes.faults()]
    assert len(names) == len(set(names))
    for step in ("updated", "begun", "records sent", "committed", "advised"):
        assert sum(f"when {step}" in name for name in names) == 3
