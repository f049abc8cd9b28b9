"""The states of a partition, and the transitions between them."""

from __future__ import annotations

import pytest

from stream_fs.errors import AbortableError, InvalidMessage, RetriableError
from stream_fs.pipeline import events
from stream_fs.pipeline.partition import commit, task
from stream_fs.pipeline.partition.state import PartitionState
from tests.support.executors import run_slowly
from tests.support.memory_broker import MemoryBroker
from tests.support.simulated_process import (
    VALUES,
    SimulatedProcess,
    broker,
    fill,
    records,
    settings,
)


def documented() -> dict[str, set[str]]:
    """The transitions in the docstring of the module, by state."""
    transitions: dict[str, set[str]] = {state.__name__: set() for state in task._TRANSITIONS}
    source = ""
    for line in (task.__doc__ or "").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 3 or not cells[2] or cells[2] == "next" or set(cells[2]) == {"-"}:
            continue
        source, following = cells[0] or source, cells[2].split(" ")[0]
        name = source.split(" ")[0]
        if source == "any":
            found = transitions.keys() - {"Released"}
        elif source == "any but Idle":
            found = transitions.keys() - {"Idle", "Failed", "Released"}
        else:
            found = {name}
        for one in found:
            transitions[one].add(following)
    return transitions


def test_the_docstring_lists_every_transition() -> None:
    expected = {
        source.__name__: {following.__name__ for following in targets}
        for source, targets in task._TRANSITIONS.items()
    }
    assert documented() == expected


def test_another_transition_is_refused() -> None:
    made = broker()
    process = SimulatedProcess(made, settings())
    process.until(lambda: bool(process.worker.tasks))
    (held,) = process.worker.tasks
    held.close()
    with pytest.raises(RuntimeError, match="cannot go from Released to Failed"):
        held._enter(task.Failed("running"))


def states(made: MemoryBroker, **changes: object) -> list[str]:
    """The states of the only partition, in order, while all its records are processed."""
    found: list[str] = []
    enter = task.PartitionTask._enter

    def noted(one: task.PartitionTask, state: PartitionState) -> None:
        found.append(type(state).__name__)
        enter(one, state)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task.PartitionTask, "_enter", noted)
        assert SimulatedProcess(made, settings(**changes), executor=run_slowly).run(600)
    return found


def test_a_partition_is_acquired_restored_and_runs() -> None:
    made = broker()
    fill(made, list(records(20)))
    assert states(made) == ["Restoring", "Idle", "Committing", "Idle"]


def test_a_broker_that_does_not_answer_is_asked_again_after_a_delay() -> None:
    made = broker()
    made.fail_next("acquire", RetriableError("not now"))
    assert states(made) == ["Backoff", "Acquiring", "Restoring", "Idle"]


def test_a_commit_is_retried_until_it_succeeds() -> None:
    made = broker()
    fill(made, list(records(20)))
    for _ in range(2):
        made.fail_next("send", AbortableError("not now"))
    # The first failures concern the record of the start, which is part of the commit.
    assert states(made) == ["Restoring", "Idle", "Committing", "Retrying", "Idle"]


def test_committed_chunks_behind_the_snapshot_are_replayed() -> None:
    made = broker()
    fill(made, VALUES)
    assert not SimulatedProcess(made, settings(), ("updated", 5)).run()
    assert states(made)[:4] == ["Restoring", "Replaying", "Idle", "Committing"]


def test_a_failed_task_commits_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made = broker()
    fill(made, VALUES)
    process = SimulatedProcess(made, settings(checkpoint_every=100))
    process.until(lambda: len(process.of(events.ChunkCommitted)) == 2)

    def refuse(*_: object) -> None:
        raise InvalidMessage("not finite")

    monkeypatch.setattr(commit, "build_messages", refuse)
    with pytest.raises(InvalidMessage):
        process.run()
    (held,) = process.worker.tasks
    assert isinstance(held._state, task.Failed)
    process.worker.stop()
    assert not process.of(events.SnapshotCommitted)
