"""When bad records are the end: one by one, in the order of the stream, by the records alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stream_fs.errors import BadRecordRefused, PoisonFlood
from stream_fs.pipeline.ports import Partition
from stream_fs.pipeline.settings import DeadLetterSettings
from stream_fs.records import Message
from stream_fs.wire.dead_letters import DeadLetter


def judge(
    policy: DeadLetterSettings,
    letters: Sequence[DeadLetter],
    good: NDArray[np.int64],
    judged: int,
    *,
    begun: int,
    first: bool,
) -> None:
    """Raise `BadRecordRefused` or `PoisonFlood` at the first bad record that is one too many.

    `letters` and the offsets `good` are of the chunk that is open, which has `begun` at an offset;
    the first `judged` of the letters were endured before. A letter is judged by what was read up to
    it, so it makes no difference in which batches that came. `first` is the chunk before which
    there is no model to keep.
    """
    offsets = np.array([letter.message.offset for letter in letters[judged:]], np.int64)
    if not len(offsets):
        return
    before = np.searchsorted(good, offsets)
    bad = judged + 1 + np.arange(len(offsets))
    keeping = "" if first else "--keep-model "
    if policy.policy == "fail":
        raise _refused(letters[judged], int(before[0]), begun, keeping)
    flood = (bad > policy.max_ratio * (before + bad)) & (bad >= policy.tolerated)
    too_many = np.flatnonzero(flood | (bad > policy.max_open))
    if len(too_many):
        at = int(too_many[0])
        raise _flood(letters[judged + at], judged + at + 1, int(before[at]), begun, keeping)


def _refused(letter: DeadLetter, good: int, begun: int, keeping: str) -> BadRecordRefused:
    message = letter.message
    place = f"record {message.topic}/{message.partition} at offset {message.offset}"
    return BadRecordRefused(
        f"{place} is bad ({letter.bad.reason}: {letter.bad.detail}), and dead_letters.policy is "
        "'fail'; to go on, mend it, set the policy to 'dead_letter' or 'skip', or move on with "
        f"{_reset(message, keeping, message.offset + 1)}"
        f"{_passed_over(good, begun)}"
    )


def _reset(message: Message, keeping: str, offset: int | str) -> str:
    return (
        f"`stream-fs checkpoint reset {Partition(message.topic, message.partition).flags} "
        f"{keeping}--to-offset {offset}`"
    )


def _flood(last: DeadLetter, bad: int, good: int, begun: int, keeping: str) -> PoisonFlood:
    message = last.message
    return PoisonFlood(
        f"{bad} of the {bad + good} records since offset {begun} of "
        f"{message.topic}/{message.partition} are bad; the last one, at offset {message.offset}, "
        f"is {last.bad.reason}: {last.bad.detail}. The producer seems to be broken, or to write "
        "records of another form. Once it is mended, move past the bad records with "
        f"{_reset(message, keeping, 'N')}, where N is the offset of the first good record behind "
        f"them{_passed_over(good, begun)}, or let them go with dead_letters.policy = 'skip', or "
        "raise dead_letters.max_ratio"
    )


def _passed_over(good: int, begun: int) -> str:
    """What moving on costs, beside the bad records."""
    if not good:
        return ""
    return (
        f" (that passes over {good} good records as well: those from offset {begun} on are in no "
        "ranking yet)"
    )
