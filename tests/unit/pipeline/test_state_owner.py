"""A state belongs to a stream and its group: several streams on a topic, and renamed ones."""

from __future__ import annotations

import random

import pytest

from stream_fs.errors import (
    AbortableError,
    CorruptProgress,
    ForeignState,
    InvalidParameter,
    RetriableError,
)
from stream_fs.pipeline import events
from stream_fs.pipeline.administration import (
    export_model,
    import_model,
    read_position,
    reset,
    reset_to_offset,
    state_errors,
)
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.pipeline.transaction import Executor, run_inline
from tests.support.executors import run_slowly
from tests.support.memory_broker import MemoryBroker
from tests.support.memory_transport import MemoryStateLog
from tests.support.simulated_process import (
    STATE,
    TOPIC,
    SimulatedProcess,
    broker,
    fill,
    settings,
    undisturbed,
)
from tests.support.two_streams import (
    BLUE,
    PLACE,
    TEAL,
    VALUES,
    begun,
    legacy,
    rankings,
    refuse,
    reset_state,
    transport,
)


def test_two_streams_on_one_topic_are_independent() -> None:
    made = begun(BLUE)
    teal = SimulatedProcess(made, TEAL)
    for number, value in enumerate(VALUES[60:], 60):
        made.produce(TOPIC, value, timestamp=1000 + number)
    assert teal.run()
    teal.worker.stop()
    assert SimulatedProcess(made, BLUE).run()
    for of in (BLUE, TEAL):
        with undisturbed(VALUES, stream=of.stream, group=of.group) as alone:
            assert rankings(made, of) == rankings(alone, of)
            assert len(rankings(made, of)) == 7


def test_they_do_not_fence_each_other() -> None:
    made = broker()
    processes = [SimulatedProcess(made, of) for of in (BLUE, TEAL)]
    for first in range(0, 120, 20):
        fill(made, VALUES[first : first + 20])
        assert all(process.run(30) for process in processes)
    assert [process.of(events.Fenced) for process in processes] == [[], []]
    assert [len(rankings(made, of)) for of in (BLUE, TEAL)] == [7, 7]


def test_a_reset_changes_only_one_of_them() -> None:
    made = begun(BLUE)
    assert SimulatedProcess(made, TEAL).run()
    reset(transport(made, TEAL), TEAL, PLACE)
    fill(made, VALUES[60:])
    assert SimulatedProcess(made, BLUE).run()
    assert [ranking["sequence"] for ranking in rankings(made, BLUE)] == list(range(1, 8))


def test_commands_with_another_configuration_name_the_owner_and_change_nothing() -> None:
    made = begun(BLUE)
    before = made.log(STATE, 0).end
    whose = "stream 'blue' in group 'blue'"
    assert reset_state(made, TEAL) == whose
    with pytest.raises(InvalidParameter, match=whose):
        export_model(transport(made, TEAL), TEAL, PLACE)
    with pytest.raises(InvalidParameter, match=whose):
        reset_to_offset(transport(made, TEAL), TEAL, PLACE, 30, keep_model=True)
    assert read_position(transport(made, TEAL), TEAL, PLACE).others == whose
    assert state_errors(transport(made, TEAL), TEAL, [PLACE]) == []
    assert made.log(STATE, 0).end == before


@pytest.mark.parametrize(
    ("other", "shared"),
    [
        (settings(stream="teal", group="blue"), "group"),
        (settings(stream="blue", group="teal"), "name"),
    ],
    ids=["the same group", "the same name"],
)
def test_a_stream_with_the_name_or_the_group_of_another_is_refused(
    other: StreamSettings, shared: str
) -> None:
    made = begun(BLUE)
    before = made.log(STATE, 0).end
    export = export_model(transport(made, BLUE), BLUE, PLACE)
    refusal = f"a state of stream 'blue' in group 'blue', which has the same {shared}.*checkpoint"
    refuse(made, other, refusal)
    with pytest.raises(ForeignState, match=refusal):
        reset(transport(made, other), other, PLACE)
    with pytest.raises(ForeignState, match=refusal):
        reset_to_offset(transport(made, other), other, PLACE, 30, keep_model=False)
    with pytest.raises(ForeignState, match=refusal):
        import_model(transport(made, other), other, PLACE, export, None)
    with pytest.raises(ForeignState, match=refusal):
        export_model(transport(made, other), other, PLACE)
    assert len(state_errors(transport(made, other), other, [PLACE])) == 1
    assert made.log(STATE, 0).end == before


def test_a_renamed_stream_keeps_its_model_by_the_advice_of_the_refusal() -> None:
    made = begun(BLUE)
    renamed = settings(stream="azure", group="blue")
    export = export_model(transport(made, BLUE), BLUE, PLACE)
    reset(transport(made, BLUE), BLUE, PLACE)
    assert import_model(transport(made, renamed), renamed, PLACE, export, None).chunk == 3
    fill(made, VALUES[60:])
    process = SimulatedProcess(made, renamed)
    assert process.run()
    process.kill()
    assert [ranking["sequence"] for ranking in rankings(made, renamed)] == [4, 5, 6, 7]
    # Its former name has reset its state, and may not share the group all the same.
    refuse(made, BLUE, "a state of stream 'azure' in group 'blue', which has the same group")
    assert len(state_errors(transport(made, BLUE), BLUE, [PLACE])) == 1


def test_a_reset_stream_may_start_anew_beside_a_legacy_state() -> None:
    made = legacy(BLUE)
    process = SimulatedProcess(made, TEAL)
    assert process.run()
    process.kill()
    assert reset_state(made, TEAL) is None
    made.commit_group_offsets(TEAL.group, {PLACE: 50})
    assert state_errors(transport(made, TEAL), TEAL, [PLACE]) == []
    assert SimulatedProcess(made, TEAL).run()
    assert [ranking["sequence"] for ranking in rankings(made, TEAL)] == 2 * list(range(1, 8))


def test_a_reset_replaces_an_unreadable_progress_record() -> None:
    made = begun(BLUE)
    made.produce(STATE, b"junk", key=BLUE.keys(PLACE).progress)
    with pytest.raises(CorruptProgress):
        SimulatedProcess(made, BLUE).run()
    assert len(state_errors(transport(made, BLUE), BLUE, [PLACE])) == 1
    assert reset_state(made, BLUE) is None
    made.produce(STATE, b"junk", key=BLUE.keys(PLACE).progress)
    reset_to_offset(transport(made, BLUE), BLUE, PLACE, 20, keep_model=False)
    assert read_position(transport(made, BLUE), BLUE, PLACE).next_offset == 20


def test_a_second_reset_changes_nothing() -> None:
    made = begun(BLUE)
    assert reset_state(made, BLUE) is None
    assert SimulatedProcess(made, TEAL).run()
    assert reset_state(made, BLUE) is None
    assert len(rankings(made, TEAL)) == 3


NAMESAKE = settings(stream="blue", group="teal", rankings_topic="out")


def race(made: MemoryBroker, executor: Executor, seed: int) -> list[SimulatedProcess]:
    """Two streams of one name take random turns; the processes that were not refused."""
    chance = random.Random(seed)
    alive = [SimulatedProcess(made, of, executor=executor) for of in (BLUE, NAMESAKE)]
    for _ in range(800):
        process = chance.choice(alive)
        try:
            process.worker.run_once()
        except ForeignState:
            process.kill()
            alive.remove(process)
    return alive


@pytest.mark.parametrize("executor", [run_inline, run_slowly])
def test_of_two_streams_that_start_at_the_same_time_one_publishes(executor: Executor) -> None:
    """Neither has a state when it acquires its partition, and the refused one leaves none."""
    for seed in range(40):
        made = broker()
        fill(made, VALUES)
        (left,) = race(made, executor, seed)
        assert [ranking["sequence"] for ranking in rankings(made, BLUE)] == list(range(1, 8))
        gone = NAMESAKE if left.settings == BLUE else BLUE
        assert read_position(transport(made, gone), gone, PLACE).progress is None


def test_a_start_is_recorded_with_the_first_chunk() -> None:
    """Until then the configuration may change, and retention may delete unused records."""
    made = broker()
    fill(made, VALUES[:10])
    process = SimulatedProcess(made, BLUE)
    assert process.run()
    process.kill()
    assert made.committed(STATE) == []
    fill(made, VALUES[10:])
    made.delete_below(TOPIC, 0, 5)
    assert SimulatedProcess(made, BLUE).run()
    assert rankings(made, BLUE)[0]["offsets"]["from"] == 5


def test_a_start_is_recorded_even_if_the_broker_does_not_answer_at_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = broker()
    fill(made, VALUES)
    made.fail_next("commit", AbortableError("not now"))
    silent = [RetriableError("no answer")]
    end = MemoryStateLog.end

    def now_and_then(log: MemoryStateLog) -> int:
        if made.committed(STATE) and silent:
            raise silent.pop()
        return end(log)

    monkeypatch.setattr(MemoryStateLog, "end", now_and_then)
    process = SimulatedProcess(made, BLUE)
    assert process.run()
    errors = [failed.error for failed in process.of(events.TransactionFailed)]
    assert errors == ["not now", "no answer"]
    assert len(rankings(made, BLUE)) == 7
