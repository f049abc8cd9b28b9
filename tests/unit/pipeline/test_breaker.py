"""Bad records are the end where the chunk is reached that they are in, however they are polled."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from stream_fs.errors import BadRecordRefused, PoisonFlood, Refusal
from stream_fs.pipeline.administration import begin_at
from stream_fs.pipeline.chunker import Chunker
from stream_fs.pipeline.ports import Partition
from stream_fs.pipeline.settings import Cut, DeadLetterSettings
from stream_fs.records import Message
from stream_fs.wire.decoder import RecordDecoder
from tests.unit.pipeline.lives import STATE, TOPIC, Life, broker, fill, published, records, settings
from tests.unit.pipeline.test_ahead import slow

RESET = "stream-fs checkpoint reset --topic in --partition 0"
GOOD = list(records(200))
BAD = b"not a record"
FAIL = DeadLetterSettings("fail")
FLOOD = DeadLetterSettings(max_ratio=0.4, tolerated=10)
FIRST, CHUNK = 20, 15


def refused(values: Sequence[bytes], policy: DeadLetterSettings, **changes: Any) -> tuple[str, int]:
    """What the refusal says, and how many rankings are out then."""
    made = broker()
    fill(made, values)
    life = Life(made, settings(dead_letters=policy), **changes)
    with pytest.raises(Refusal) as caught:
        life.run()
    return str(caught.value), len(published(made))


@pytest.mark.parametrize("changes", [{}, {"aside": slow}], ids=["at once", "aside"])
def test_full_chunks_before_a_bad_record_are_published(changes: dict[str, Any]) -> None:
    text, rankings = refused([*GOOD[:70], BAD, *GOOD[70:]], FAIL, **changes)
    assert rankings == 4
    assert "offset 70 is bad (malformed" in text
    assert f"`{RESET} --keep-model --to-offset 71`" in text
    assert "passes over 5 good records as well: those from offset 65 on" in text


def test_what_is_published_is_not_said_to_be_passed_over() -> None:
    text, rankings = refused([*GOOD[: FIRST + CHUNK], BAD], FAIL)
    assert rankings == 2
    assert text.endswith(f"`{RESET} --keep-model --to-offset 36`")


def test_before_the_first_chunk_there_is_no_model_to_keep() -> None:
    text, rankings = refused([*GOOD[:3], BAD], FAIL)
    assert rankings == 0
    assert f"`{RESET} --to-offset 4` (that passes over 3 good records" in text


def test_full_chunks_before_a_flood_are_published() -> None:
    text, rankings = refused([*GOOD[:70], *[BAD] * 50], FLOOD)
    assert rankings == 4
    assert "10 of the 15 records since offset 65 of in/0 are bad" in text
    assert "passes over 5 good records" in text
    assert f"`{RESET} --keep-model --to-offset N`, where N is the offset of the first good" in text


def test_a_flood_before_the_first_chunk_leaves_no_model_to_keep() -> None:
    text, _ = refused([*GOOD[:3], *[BAD] * 50], FLOOD)
    assert f"`{RESET} --to-offset N`, where N is the offset of the first good record" in text


def test_the_advice_after_a_flood_keeps_the_model_and_the_sequence() -> None:
    """As an operator who follows it finds: what was learnt is not thrown away."""
    made = broker()
    fill(made, [*GOOD[:65], *[BAD] * 50, *GOOD[65:]])
    of = settings(dead_letters=FLOOD)
    life = Life(made, of)
    with pytest.raises(PoisonFlood):
        life.run()
    life.die()
    transport = made.transport("g", {TOPIC: STATE})
    begin_at(transport, of, Partition(TOPIC, 0), 115, keep_model=True)
    assert Life(made, of).run()
    sequences = [json.loads(value)["sequence"] for _, value, _ in published(made)]
    assert sequences == list(range(1, len(sequences) + 1))
    assert len(sequences) > 4


def outcome(values: Sequence[bytes], policy: DeadLetterSettings, cut: Cut, size: int) -> Any:
    """The chunks, and the end if there is one, of records that come so many at a time."""
    chunker = Chunker(RecordDecoder(settings().views, "msgpack"), policy, 0)
    found: list[tuple[int, ...]] = []
    messages = [
        Message(TOPIC, 0, offset, 1000 * (offset // 4), None, value, ())
        for offset, value in enumerate(values)
    ]
    try:
        for start in range(0, len(messages), size):
            chunker.add(messages[start : start + size])
            while (ready := chunker.take(len(found) + 1, cut)) is not None:
                found.append((ready.start, ready.next, len(ready.letters)))
    except (BadRecordRefused, PoisonFlood) as error:
        return found, str(error)
    return found, None


@pytest.mark.parametrize("cut", [Cut(CHUNK, FIRST), Cut(CHUNK, FIRST, 2000)], ids=["count", "span"])
@pytest.mark.parametrize(
    ("values", "policy", "ends"),
    [
        ([*GOOD[:50], BAD, *GOOD[50:]], FAIL, True),
        ([*GOOD[:30], *[BAD] * 12, *GOOD[30:]], FLOOD, True),
        ([*GOOD[:28], *[BAD] * 9, *GOOD[28:], *[BAD] * 30], FLOOD, True),
        ([*GOOD[:30], *[BAD] * 9, *GOOD[30:]], FLOOD, False),
        ([*GOOD[:30], *[BAD] * 6, *GOOD[30:]], DeadLetterSettings(max_open=5), True),
    ],
)
def test_the_end_does_not_depend_on_batches(
    values: Sequence[bytes], policy: DeadLetterSettings, ends: bool, cut: Cut
) -> None:
    one_by_one = outcome(values, policy, cut, 1)
    assert (one_by_one[1] is not None) is ends
    for size in (2, 3, 7, 16, 50, 300):
        assert outcome(values, policy, cut, size) == one_by_one


def test_what_an_earlier_life_has_dealt_with_is_endured() -> None:
    """A stricter policy is for what comes, not for what is computed again."""
    made = broker()
    fill(made, [*GOOD[:50], BAD, *GOOD[50:]])
    assert not Life(made, settings(), ("updated", 4)).run()
    assert Life(made, settings(dead_letters=FAIL)).run()
    assert len(published(made)) == 13
