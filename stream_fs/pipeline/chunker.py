"""Cutting a partition into chunks, by the data alone.

A chunk is the next N good records; it ends right after the last of them, so bad records behind it
belong to the next chunk. Neither the clock nor the way the messages came in batches has a say:
reading the same partition from the same offset gives the same chunks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stream_fs.errors import BadRecordRefused, PoisonFlood
from stream_fs.pipeline.settings import Cut, DeadLetterSettings
from stream_fs.records import BadRecord, Message, Messages
from stream_fs.selector import Chunk
from stream_fs.wire.batch import Batch, to_chunk
from stream_fs.wire.decoder import RecordDecoder


@dataclass(frozen=True, slots=True)
class Letter:
    """A bad record and what is wrong with it."""

    message: Message
    bad: BadRecord


@dataclass(frozen=True, slots=True, eq=False)
class ReadyChunk:
    """A chunk and where it comes from: offsets [start, next), `as_of` its largest timestamp."""

    chunk: Chunk
    start: int
    next: int
    as_of: int
    letters: tuple[Letter, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """Good records of one batch that no chunk has taken yet, with their offsets and timestamps."""

    batch: Batch
    offsets: NDArray[np.int64]
    timestamps: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets)

    def split(self, count: int) -> tuple[_Piece, _Piece]:
        return self._part(0, count), self._part(count, len(self))

    def _part(self, start: int, stop: int) -> _Piece:
        return _Piece(
            self.batch.take(start, stop), self.offsets[start:stop], self.timestamps[start:stop]
        )


class Chunker:
    """Collects messages of one partition, from the offset `start` on, and hands out chunks."""

    def __init__(
        self, decoder: RecordDecoder, dead_letters: DeadLetterSettings, start: int
    ) -> None:
        self._decoder = decoder
        self._policy = dead_letters
        self._start = start
        self._pieces: deque[_Piece] = deque()
        self._letters: deque[Letter] = deque()
        self.position = start
        """The offset behind the last message that was added."""

    @property
    def good(self) -> int:
        """Good records that wait for their chunk to be full."""
        return sum(len(piece) for piece in self._pieces)

    @property
    def reach(self) -> int:
        """The offset behind the last of them; where there is none, behind the last chunk."""
        return int(self._pieces[-1].offsets[-1]) + 1 if self._pieces else self._start

    @property
    def bad(self) -> int:
        """Bad records that wait with them; skipped ones do not."""
        return len(self._letters)

    def add(self, messages: Sequence[Message]) -> Batch:
        """Decode messages, in the order of their offsets, and keep them for the next chunk.

        Raises `BadRecordRefused` and `PoisonFlood` as the settings ask.
        """
        values, offsets, timestamps = _columns(messages)
        batch = self._decoder.decode(values)
        if len(batch.good):
            self._pieces.append(_Piece(batch, offsets[batch.good], timestamps[batch.good]))
        if values:
            self.position = int(offsets[-1]) + 1
        if batch.bad and self._policy.policy != "skip":
            for bad in batch.bad:
                self._letters.append(Letter(messages[bad.position], bad))
            self._judge()
        return batch

    def take(self, sequence: int, cut: Cut) -> ReadyChunk | None:
        """The chunk with this number, counted from 1, or None while it is not complete."""
        if sequence == 1:
            count = cut.first
        elif cut.max_span is None:
            count = cut.records
        else:
            count = self._closing(cut.records, cut.max_span)
        if count > self.good:
            return None
        taken: list[_Piece] = []
        while count:
            piece = self._pieces.popleft()
            if len(piece) > count:
                piece, rest = piece.split(count)
                self._pieces.appendleft(rest)
            taken.append(piece)
            count -= len(piece)
        following = int(taken[-1].offsets[-1]) + 1
        letters: list[Letter] = []
        while self._letters and self._letters[0].message.offset < following:
            letters.append(self._letters.popleft())
        start, self._start = self._start, following
        return ReadyChunk(
            chunk=to_chunk([piece.batch for piece in taken]),
            start=start,
            next=following,
            as_of=max(int(piece.timestamps.max()) for piece in taken),
            letters=tuple(letters),
        )

    def _closing(self, size: int, max_span: int) -> int:
        """How many records the next chunk has: `size`, or fewer where the span closes it."""
        if not self._pieces:
            return size
        stamps = np.concatenate([piece.timestamps for piece in self._pieces])[: size + 1]
        spread = np.maximum.accumulate(stamps) - np.minimum.accumulate(stamps)
        beyond = np.flatnonzero(spread > max_span)
        return min(size, int(beyond[0])) if len(beyond) else size

    def _judge(self) -> None:
        """Stop where the policy says so: at the first bad record, or when there are too many."""
        policy = self._policy
        if policy.policy == "fail":
            letter = self._letters[0]
            raise BadRecordRefused(
                f"{_place(letter.message)} is bad ({letter.bad.reason}: {letter.bad.detail}), and "
                "dead_letters.policy is 'fail'; to go on, mend it, set the policy to 'dead_letter' "
                "or 'skip', or move on with `stream-fs checkpoint reset --to-offset "
                f"{letter.message.offset + 1}`"
            )
        seen = self.good + self.bad
        flood = self.bad > policy.max_ratio * seen and self.bad >= policy.tolerated
        if flood or self.bad > policy.max_open:
            first, last = self._letters[0], self._letters[-1]
            raise PoisonFlood(
                f"{self.bad} of the {seen} records since offset {self._start} of "
                f"{first.message.topic}/{first.message.partition} are bad; the last one, at offset "
                f"{last.message.offset}, is {last.bad.reason}: {last.bad.detail}. "
                "The producer seems to be broken. Once it is mended, move past the bad records "
                "with `stream-fs checkpoint reset --to-offset`, or let them go with "
                "dead_letters.policy = 'skip', or raise dead_letters.max_ratio"
            )


def _columns(
    messages: Sequence[Message],
) -> tuple[Sequence[bytes | None], NDArray[np.int64], NDArray[np.int64]]:
    """Values, offsets and timestamps, without a look at anything else."""
    values: Sequence[bytes | None]
    if isinstance(messages, Messages):
        values, offsets, timestamps = messages.values(), messages.offsets(), messages.timestamps()
    else:
        values = [message.value for message in messages]
        offsets = [message.offset for message in messages]
        timestamps = [message.timestamp for message in messages]
    return values, np.array(offsets, np.int64), np.array(timestamps, np.int64)


def _place(message: Message) -> str:
    return f"record {message.topic}/{message.partition} at offset {message.offset}"
