"""Bad records stop the stream when their chunk is reached, however they were polled."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from stream_fs.errors import BadRecordRefused, PoisonFlood, Refusal
from stream_fs.pipeline.administration import reset_to_offset
from stream_fs.pipeline.chunker import Chunker
from stream_fs.pipeline.ports import Partition
from stream_fs.pipeline.settings import ChunkPolicy, DeadLetterSettings
from stream_fs.records import Message, Payload
from stream_fs.wire import dead_letters
from stream_fs.wire.records.decoder import RecordDecoder
from tests.support.executors import run_slowly
from tests.support.memory_transport import MemoryTransport
from tests.support.settings import dead_letter_settings
from tests.support.simulated_process import (
    LETTERS,
    STATE,
    TOPIC,
    SimulatedProcess,
    broker,
    fill,
    published,
    records,
    settings,
)

RESET = "stream-fs checkpoint reset --topic in --partition 0"
GOOD = list(records(200))
BAD = b"not a record"
FAIL = dead_letter_settings(policy="fail")
FLOOD = dead_letter_settings(max_ratio=0.4, tolerated=10)
FIRST, CHUNK = 20, 15


def refused(values: Sequence[bytes], policy: DeadLetterSettings, **changes: Any) -> tuple[str, int]:
    """The text of the refusal, and the number of rankings published before it."""
    made = broker()
    fill(made, values)
    process = SimulatedProcess(made, settings(dead_letters=policy), **changes)
    with pytest.raises(Refusal) as caught:
        process.run()
    return str(caught.value), len(published(made))


@pytest.mark.parametrize("changes", [{}, {"executor": run_slowly}], ids=["inline", "in a thread"])
def test_full_chunks_before_a_bad_record_are_published(changes: dict[str, Any]) -> None:
    text, rankings = refused([*GOOD[:70], BAD, *GOOD[70:]], FAIL, **changes)
    assert rankings == 4
    assert "offset 70 is bad (malformed" in text
    assert f"`{RESET} --keep-model --to-offset 71`" in text
    assert "this also skips 5 good records: those from offset 65 on" in text


def test_published_records_are_not_counted_as_skipped() -> None:
    text, rankings = refused([*GOOD[: FIRST + CHUNK], BAD], FAIL)
    assert rankings == 2
    assert text.endswith(f"`{RESET} --keep-model --to-offset 36`")


def test_before_the_first_chunk_the_advice_keeps_no_model() -> None:
    text, rankings = refused([*GOOD[:3], BAD], FAIL)
    assert rankings == 0
    assert f"`{RESET} --to-offset 4` (this also skips 3 good records" in text


def test_full_chunks_before_a_flood_are_published() -> None:
    text, rankings = refused([*GOOD[:70], *[BAD] * 50], FLOOD)
    assert rankings == 4
    assert "10 of the 15 records since offset 65 of in/0 are bad" in text
    assert "this also skips 5 good records" in text
    assert f"`{RESET} --keep-model --to-offset N`, where N is the offset of the first good" in text


def test_the_advice_after_a_flood_before_the_first_chunk_keeps_no_model() -> None:
    text, _ = refused([*GOOD[:3], *[BAD] * 50], FLOOD)
    assert f"`{RESET} --to-offset N`, where N is the offset of the first good record" in text


def test_the_advice_after_a_flood_keeps_the_model_and_the_sequence() -> None:
    """An operator who follows it does not lose the model."""
    made = broker()
    fill(made, [*GOOD[:65], *[BAD] * 50, *GOOD[65:]])
    of = settings(dead_letters=FLOOD)
    process = SimulatedProcess(made, of)
    with pytest.raises(PoisonFlood):
        process.run()
    process.kill()
    transport = MemoryTransport(made, "g", {TOPIC: STATE})
    reset_to_offset(transport, of, Partition(TOPIC, 0), 115, keep_model=True)
    assert SimulatedProcess(made, of).run()
    sequences = [json.loads(value)["sequence"] for _, value, _ in published(made)]
    assert sequences == list(range(1, len(sequences) + 1))
    assert len(sequences) > 4


def outcome(
    values: Sequence[bytes], policy: DeadLetterSettings, cut: ChunkPolicy, size: int
) -> Any:
    """The chunks of records polled so many at a time, and the refusal, if any."""
    chunker = Chunker(RecordDecoder(settings().views, "msgpack"), policy, 0, settled=0)
    found: list[tuple[int, ...]] = []
    messages = [
        Message(TOPIC, 0, offset, 1000 * (offset // 4), None, value, ())
        for offset, value in enumerate(values)
    ]
    try:
        for start in range(0, len(messages), size):
            chunker.add(messages[start : start + size])
            while (ready := chunker.take(len(found) + 1, cut)) is not None:
                found.append((ready.from_offset, ready.next_offset, len(ready.dead_letters)))
    except (BadRecordRefused, PoisonFlood) as error:
        return found, str(error)
    return found, None


@pytest.mark.parametrize(
    "cut", [ChunkPolicy(CHUNK, FIRST), ChunkPolicy(CHUNK, FIRST, 2000)], ids=["count", "span"]
)
@pytest.mark.parametrize(
    ("values", "policy", "ends"),
    [
        ([*GOOD[:50], BAD, *GOOD[50:]], FAIL, True),
        ([*GOOD[:30], *[BAD] * 12, *GOOD[30:]], FLOOD, True),
        ([*GOOD[:28], *[BAD] * 9, *GOOD[28:], *[BAD] * 30], FLOOD, True),
        ([*GOOD[:30], *[BAD] * 9, *GOOD[30:]], FLOOD, False),
        ([*GOOD[:30], *[BAD] * 6, *GOOD[30:]], dead_letter_settings(max_open=5), True),
    ],
)
def test_a_refusal_does_not_depend_on_polls(
    values: Sequence[bytes], policy: DeadLetterSettings, ends: bool, cut: ChunkPolicy
) -> None:
    one_by_one = outcome(values, policy, cut, 1)
    assert (one_by_one[1] is not None) is ends
    for size in (2, 3, 7, 16, 50, 300):
        assert outcome(values, policy, cut, size) == one_by_one


LARGE = b"x" * 6_000
ROOMY = dead_letter_settings(max_ratio=1.0, max_open_bytes=20_000)
SHORTENED = "stream-fs-value-sha256"


def letters_of(
    values: Sequence[bytes], cut: ChunkPolicy, size: int, begun: tuple[int, int] = (0, 0)
) -> dict[int, list[Payload]]:
    """The dead letters of every chunk of records polled so many at a time.

    `begun` is how many chunks there were before, and the offset behind them.
    """
    sequence, start = begun
    chunker = Chunker(RecordDecoder(settings().views, "msgpack"), ROOMY, start, settled=0)
    found: dict[int, list[Payload]] = {}
    messages = [
        Message(TOPIC, 0, offset, 1000 * (offset // 4), None, value, ())
        for offset, value in enumerate(values)
    ][start:]
    for at in range(0, len(messages), size):
        chunker.add(messages[at : at + size])
        while (ready := chunker.take(sequence + 1, cut)) is not None:
            sequence += 1
            found[sequence] = [letter.payload for letter in ready.dead_letters]
            ENDS[cut, sequence] = ready.next_offset
    return found


ENDS: dict[tuple[ChunkPolicy, int], int] = {}


def shortened(letters: Sequence[Payload]) -> list[bool]:
    return [any(name == SHORTENED for name, _ in letter.headers) for letter in letters]


@pytest.mark.parametrize(
    "cut", [ChunkPolicy(CHUNK, FIRST), ChunkPolicy(CHUNK, FIRST, 2000)], ids=["count", "span"]
)
def test_shortened_dead_letters_do_not_depend_on_polls_or_restarts(
    cut: ChunkPolicy,
) -> None:
    values: list[bytes] = []
    for number, good in enumerate(GOOD[:120]):
        values += [good, *[LARGE] * (number % 7 // 3), *[BAD] * (number % 5 // 4)]
        if number in (39, 40, 75):
            values += [LARGE] * 5
    one_by_one = letters_of(values, cut, 1)
    assert sum(map(len, one_by_one.values())) > 50
    found = [shortened(letters) for letters in one_by_one.values()]
    assert any(any(chunk) for chunk in found)
    assert not all(all(chunk) for chunk in found)
    for size in (2, 3, 7, 16, 50, 500):
        assert letters_of(values, cut, size) == one_by_one
    for sequence in list(one_by_one)[:-1]:
        rest = {number: one_by_one[number] for number in one_by_one if number > sequence}
        assert letters_of(values, cut, 5, (sequence, ENDS[cut, sequence])) == rest


def test_the_first_and_all_small_dead_letters_of_a_chunk_are_whole() -> None:
    values = [*GOOD[:10], *[LARGE, BAD] * 6, *GOOD[10:FIRST], LARGE, *GOOD[FIRST : FIRST + CHUNK]]
    first, second = letters_of(values, ChunkPolicy(CHUNK, FIRST), 4).values()
    assert shortened(first) == [False, False] * 3 + [True, False] * 3
    assert {letter.value for letter in first} == {LARGE, BAD, LARGE[:1024]}
    assert shortened(second) == [False]


@pytest.mark.parametrize(
    "cut", [ChunkPolicy(500, 500), ChunkPolicy(500, 500, 10**9)], ids=["count", "span"]
)
def test_the_memory_of_dead_letters_is_bounded(cut: ChunkPolicy) -> None:
    policy = dead_letter_settings(max_ratio=1.0, max_open_bytes=2_000_000)
    chunker = Chunker(RecordDecoder(settings().views, "msgpack"), policy, 0, settled=0)
    tracemalloc.start()
    for offset in range(150):
        value = bytes(1_000_000) if offset % 3 else GOOD[offset]
        chunker.add([Message(TOPIC, 0, offset, 0, None, value, ())])
        assert chunker.take(1, cut) is None
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 6_000_000


def test_a_dead_letter_is_measured_only_a_few_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An open chunk may hold ten thousand of them, and is checked after every poll."""
    measured, count = Counter[str](), 200
    measure = dead_letters.message_bytes

    def counted(payload: Payload) -> int:
        measured["times"] += 1
        return measure(payload)

    monkeypatch.setattr(dead_letters, "message_bytes", counted)
    chunker = Chunker(RecordDecoder(settings().views, "msgpack"), ROOMY, 0, settled=0)
    for offset in range(count):
        value = (LARGE, BAD)[offset % 2]
        chunker.add([Message(TOPIC, 0, offset, 0, None, value, ())])
        assert chunker.take(1, ChunkPolicy(CHUNK, FIRST)) is None
    assert count < measured["times"] < 6 * count


def test_occasional_large_bad_records_do_not_stop_a_stream() -> None:
    values = [
        value
        for number, good in enumerate(GOOD)
        for value in ([good, LARGE] if number % 3 == 0 else [good])
    ]
    made = broker()
    fill(made, values)
    bound = dead_letter_settings(max_open_bytes=20_000)
    assert SimulatedProcess(made, settings(dead_letters=bound)).run()
    assert len(published(made)) == 13
    assert {len(value) for _, value, _ in published(made, LETTERS)} == {len(LARGE), 1024}


def test_bad_records_accepted_before_a_restart_do_not_stop_a_replay() -> None:
    """A stricter policy applies to new records only."""
    made = broker()
    fill(made, [*GOOD[:50], BAD, *GOOD[50:]])
    assert not SimulatedProcess(made, settings(), ("updated", 4)).run()
    assert SimulatedProcess(made, settings(dead_letters=FAIL)).run()
    assert len(published(made)) == 13
