"""Cutting a partition into chunks, by the data alone.

A chunk is the next N good records; it ends right after the last of them, so bad records behind it
belong to the next chunk. Neither the clock nor the way the messages came in batches has a say:
reading the same partition from the same offset gives the same chunks. Nor has it in whether bad
records are the end: that is decided when the chunk is taken in which they are, after all before it.

Dead letters are held until their chunk is taken. Those behind the first `max_open_bytes` of a chunk
are shortened: which ones depends on the bad records of that chunk alone.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stream_fs.pipeline.dead_letter_policy import judge
from stream_fs.pipeline.settings import ChunkPolicy, DeadLetterSettings
from stream_fs.records import Message, Messages
from stream_fs.selector import Chunk
from stream_fs.wire.dead_letters import SHORT_BYTES, DeadLetter
from stream_fs.wire.records.batch import Batch, to_chunk
from stream_fs.wire.records.decoder import RecordDecoder


@dataclass(frozen=True, slots=True, eq=False)
class ReadyChunk:
    """A chunk and where it comes from: offsets [start, next), `as_of` its largest timestamp."""

    chunk: Chunk
    start: int
    next: int
    as_of: int
    letters: tuple[DeadLetter, ...]


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
    """Collects messages of one partition, from the offset `start` on, and hands out chunks.

    Bad records below the offset `settled` were dealt with in an earlier life, and are endured.
    """

    def __init__(
        self,
        decoder: RecordDecoder,
        dead_letters: DeadLetterSettings,
        start: int,
        settled: int = 0,
    ) -> None:
        self._decoder = decoder
        self._policy = dead_letters
        self._start = start
        self._settled = settled
        self._judged = 0  # bad records of the open chunk that were endured
        self._limited = 0  # dead letters when those of the open chunk were last shortened
        self._pieces: deque[_Piece] = deque()
        self._letters: deque[DeadLetter] = deque()
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

    def add(self, messages: Sequence[Message]) -> Batch:
        """Decode messages, in the order of their offsets, and keep them for the next chunk."""
        values, offsets, timestamps = _columns(messages)
        batch = self._decoder.decode(values)
        if len(batch.good):
            self._pieces.append(_Piece(batch, offsets[batch.good], timestamps[batch.good]))
        if values:
            self.position = int(offsets[-1]) + 1
        if batch.bad and self._policy.policy != "skip":
            for bad in batch.bad:
                message = messages[bad.position]
                self._letters.append(DeadLetter.of(message, bad, self._policy.largest))
        return batch

    def take(self, sequence: int, cut: ChunkPolicy) -> ReadyChunk | None:
        """The chunk with this number, counted from 1, or None while it is not complete.

        Raises `BadRecordRefused` and `PoisonFlood` as the settings ask, at a bad record in it.
        """
        if sequence == 1:
            count, complete = cut.first, cut.first
        elif cut.max_span is None:
            count, complete = cut.records, cut.records
        else:
            count = self._closing(cut.records, cut.max_span)
            # One that its span closes is complete with the next good record, and not before.
            complete = min(count + 1, cut.records)
        if self._letters:
            self._judge(self._place(complete), sequence == 1)
        if count > self.good:
            self._limit_open()
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
        letters: list[DeadLetter] = []
        while self._letters and self._letters[0].message.offset < following:
            letters.append(self._letters.popleft())
        self._judged = self._limited = 0
        start, self._start = self._start, following
        return ReadyChunk(
            chunk=to_chunk([piece.batch for piece in taken]),
            start=start,
            next=following,
            as_of=max(int(piece.timestamps.max()) for piece in taken),
            letters=tuple(self._within_limit(letters)),
        )

    def _limit_open(self) -> None:
        """Shorten dead letters of the open chunk that will be shortened when it is taken.

        Those behind the newest good record are counted from the first of them: the next good record
        may close the chunk by its span, and they then belong to the next chunk.
        """
        if len(self._letters) == self._limited:
            return
        reach = self.reach
        before = [letter for letter in self._letters if letter.message.offset < reach]
        behind = list(self._letters)[len(before) :]
        self._letters = deque([*self._within_limit(before), *self._within_limit(behind)])
        self._limited = len(self._letters)

    def _within_limit(self, letters: Sequence[DeadLetter]) -> Iterator[DeadLetter]:
        """Dead letters that follow each other in a chunk, with those behind the limit shortened."""
        room = self._policy.max_open_bytes
        for letter in letters:
            room -= letter.size
            yield letter if room >= 0 else letter.shortened(SHORT_BYTES)

    def _place(self, count: int) -> float:
        """The offset behind so many good records; infinite where there are fewer."""
        for piece in self._pieces:
            if count <= len(piece):
                return int(piece.offsets[count - 1]) + 1
            count -= len(piece)
        return math.inf

    def _closing(self, size: int, max_span: int) -> int:
        """How many records the next chunk has: `size`, or fewer where the span closes it."""
        if not self._pieces:
            return size
        stamps = np.concatenate([piece.timestamps for piece in self._pieces])[: size + 1]
        spread = np.maximum.accumulate(stamps) - np.minimum.accumulate(stamps)
        beyond = np.flatnonzero(spread > max_span)
        return min(size, int(beyond[0])) if len(beyond) else size

    def _judge(self, below: float, first: bool) -> None:
        """Stop at a bad record below this offset, if it is one too many for the open chunk."""
        found = [letter for letter in self._letters if letter.message.offset < below]
        if len(found) <= self._judged:
            return
        known = sum(letter.message.offset < self._settled for letter in found)
        good = np.concatenate([np.empty(0, np.int64), *(p.offsets for p in self._pieces)])
        endured = max(self._judged, known)
        judge(self._policy, found, good, endured, begun=self._start, first=first)
        self._judged = len(found)


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
