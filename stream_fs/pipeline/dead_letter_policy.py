"""Decides when bad records stop the stream, one by one in its order and by its records alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stream_fs.errors import BadRecordRefused, PoisonFlood
from stream_fs.pipeline.ports import Partition
from stream_fs.pipeline.settings import DeadLetterSettings
from stream_fs.records import Message
from stream_fs.wire.dead_letters import DeadLetter


def check_bad_records(
    policy: DeadLetterSettings,
    letters: Sequence[DeadLetter],
    good: NDArray[np.int64],
    accepted: int,
    *,
    chunk_start: int,
    first: bool,
) -> None:
    """Raise `BadRecordRefused` or `PoisonFlood` at the first bad record that exceeds a limit.

    `letters` and the offsets `good` belong to the open chunk, which begins at `chunk_start`; the
    first `accepted` letters were accepted before. Each bad record is judged by the records up to
    it, so batches of messages make no difference. The `first` chunk has no model before it that
    could be kept.
    """
    offsets = np.array([letter.message.offset for letter in letters[accepted:]], np.int64)
    if not len(offsets):
        return
    before = np.searchsorted(good, offsets)
    bad = accepted + 1 + np.arange(len(offsets))
    keep_model = "" if first else "--keep-model "
    if policy.policy == "fail":
        raise _refused(letters[accepted], int(before[0]), chunk_start, keep_model)
    flood = (bad > policy.max_ratio * (before + bad)) & (bad >= policy.tolerated)
    too_many = np.flatnonzero(flood | (bad > policy.max_open))
    if len(too_many):
        at = int(too_many[0])
        raise _flood(
            letters[accepted + at], accepted + at + 1, int(before[at]), chunk_start, keep_model
        )


def _refused(letter: DeadLetter, good: int, chunk_start: int, keep_model: str) -> BadRecordRefused:
    message = letter.message
    place = f"record {message.topic}/{message.partition} at offset {message.offset}"
    return BadRecordRefused(
        f"{place} is bad ({letter.bad.reason}: {letter.bad.detail}), and dead_letters.policy is "
        "'fail'; to continue, set the policy to 'dead_letter' or 'skip', or skip the "
        "record with "
        f"{_reset(message, keep_model, message.offset + 1)}"
        f"{_skipped_text(good, chunk_start)}"
    )


def _reset(message: Message, keep_model: str, offset: int | str) -> str:
    return (
        f"`stream-fs checkpoint reset {Partition(message.topic, message.partition).flags} "
        f"{keep_model}--to-offset {offset}`"
    )


def _flood(last: DeadLetter, bad: int, good: int, chunk_start: int, keep_model: str) -> PoisonFlood:
    message = last.message
    return PoisonFlood(
        f"{bad} of the {bad + good} records since offset {chunk_start} of "
        f"{message.topic}/{message.partition} are bad; the last one, at offset {message.offset}, "
        f"is {last.bad.reason}: {last.bad.detail}. The producer seems to be broken, or to write "
        "records in another format. Once it is corrected, skip the bad records with "
        f"{_reset(message, keep_model, 'N')}, where N is the offset of the first good record "
        f"behind them{_skipped_text(good, chunk_start)}, or set dead_letters.policy = 'skip', or "
        "raise dead_letters.max_ratio"
    )


def _skipped_text(good: int, chunk_start: int) -> str:
    """The good records that are skipped together with the bad ones."""
    if not good:
        return ""
    return (
        f" (this also skips {good} good records: those from offset {chunk_start} on are in no "
        "ranking yet)"
    )
