"""Divides a partition into chunks, by its data alone.

A chunk is the next N good records. It ends right after the last of them, so bad records behind it
belong to the next chunk. Boundaries depend neither on the clock nor on how messages were polled:
reading the same partition from the same offset gives the same chunks. The same holds for bad
records that stop the stream: they do so when their chunk is taken, after all chunks before it.

Dead letters are held until their chunk is taken. Those behind the first `max_open_bytes` of a chunk
are shortened; which ones these are depends on the bad records of that chunk alone.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stream_fs.pipeline.dead_letter_policy import check_bad_records
from stream_fs.pipeline.settings import ChunkPolicy, DeadLetterSettings
from stream_fs.records import Message, Messages
from stream_fs.selector import Chunk
from stream_fs.wire.dead_letters import SHORT_BYTES, DeadLetter
from stream_fs.wire.records.batch import Batch, to_chunk
from stream_fs.wire.records.decoder import RecordDecoder


@dataclass(frozen=True, slots=True, eq=False)
class ReadyChunk:
    """A chunk of the offsets [from_offset, next_offset); `as_of` is its largest timestamp."""

    chunk: Chunk
    from_offset: int
    next_offset: int
    as_of: int
    dead_letters: tuple[DeadLetter, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """Good records of one batch that are in no chunk yet, with their offsets and timestamps."""

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
    """Collects messages of one partition, from the offset `start` on, and forms chunks.

    Bad records below the offset `settled` were accepted before a restart, and do not stop the
    stream.
    """

    def __init__(
        self,
        decoder: RecordDecoder,
        dead_letters: DeadLetterSettings,
        start: int,
        settled: int,
    ) -> None:
        self._decoder = decoder
        self._dead_letters = dead_letters
        self._start = start
        self._settled = settled
        self._checked = 0  # bad records of the open chunk that were accepted
        self._limited = 0  # dead letters when those of the open chunk were last shortened
        self._pieces: deque[_Piece] = deque()
        self._letters: deque[DeadLetter] = deque()
        self.position = start
        """The offset behind the last message that was added."""

    @property
    def good(self) -> int:
        """Good records of the open chunk."""
        return sum(len(piece) for piece in self._pieces)

    @property
    def reach(self) -> int:
        """The offset behind the last of them; if there is none, behind the last chunk."""
        return int(self._pieces[-1].offsets[-1]) + 1 if self._pieces else self._start

    def add(self, messages: Sequence[Message]) -> Batch:
        """Decode messages, in the order of their offsets, and keep them for the next chunk."""
        values, offsets, timestamps = _columns(messages)
        batch = self._decoder.decode(values)
        if len(batch.good):
            self._pieces.append(_Piece(batch, offsets[batch.good], timestamps[batch.good]))
        if values:
            self.position = int(offsets[-1]) + 1
        if batch.bad and self._dead_letters.policy != "skip":
            for bad in batch.bad:
                message = messages[bad.position]
                self._letters.append(DeadLetter.of(message, bad, self._dead_letters.largest))
        return batch

    def take(self, sequence: int, policy: ChunkPolicy) -> ReadyChunk | None:
        """The chunk with this number, counted from 1, or None while it is not complete.

        Raises `BadRecordRefused` or `PoisonFlood` for bad records in it, as the settings say.
        """
        if sequence == 1:
            count, complete = policy.first, policy.first
        elif policy.max_span is None:
            count, complete = policy.records, policy.records
        else:
            count = self._closing_count(policy.records, policy.max_span)
            # A chunk closed by its span is complete when the next good record arrives.
            complete = min(count + 1, policy.records)
        if self._letters:
            self._check(self._offset_behind(complete), sequence == 1)
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
        self._checked = self._limited = 0
        start, self._start = self._start, following
        return ReadyChunk(
            chunk=to_chunk([piece.batch for piece in taken]),
            from_offset=start,
            next_offset=following,
            as_of=max(int(piece.timestamps.max()) for piece in taken),
            dead_letters=tuple(self._within_limit(letters)),
        )

    def _limit_open(self) -> None:
        """Shorten those dead letters of the open chunk that `take` would shorten.

        Dead letters behind the newest good record are counted separately: the next good record may
        close the chunk by its span, and they then belong to the next chunk.
        """
        if len(self._letters) == self._limited:
            return
        reach = self.reach
        before = [letter for letter in self._letters if letter.message.offset < reach]
        behind = list(self._letters)[len(before) :]
        self._letters = deque([*self._within_limit(before), *self._within_limit(behind)])
        self._limited = len(self._letters)

    def _within_limit(self, letters: Sequence[DeadLetter]) -> Iterator[DeadLetter]:
        """Consecutive dead letters of a chunk, those behind the limit shortened."""
        room = self._dead_letters.max_open_bytes
        for letter in letters:
            room -= letter.size
            yield letter if room >= 0 else letter.shortened(SHORT_BYTES)

    def _offset_behind(self, count: int) -> float:
        """The offset behind `count` good records; infinite if there are fewer."""
        for piece in self._pieces:
            if count <= len(piece):
                return int(piece.offsets[count - 1]) + 1
            count -= len(piece)
        return math.inf

    def _closing_count(self, size: int, max_span: int) -> int:
        """The number of records in the next chunk: `size`, or fewer if the span closes it."""
        if not self._pieces:
            return size
        stamps = np.concatenate([piece.timestamps for piece in self._pieces])[: size + 1]
        spread = np.maximum.accumulate(stamps) - np.minimum.accumulate(stamps)
        beyond = np.flatnonzero(spread > max_span)
        return min(size, int(beyond[0])) if len(beyond) else size

    def _check(self, below: float, first: bool) -> None:
        """Raise at the first bad record below this offset that exceeds a limit of its chunk."""
        found = [letter for letter in self._letters if letter.message.offset < below]
        if len(found) <= self._checked:
            return
        known = sum(letter.message.offset < self._settled for letter in found)
        good = np.concatenate([np.empty(0, np.int64), *(p.offsets for p in self._pieces)])
        accepted = max(self._checked, known)
        check_bad_records(
            self._dead_letters, found, good, accepted, chunk_start=self._start, first=first
        )
        self._checked = len(found)


def _columns(
    messages: Sequence[Message],
) -> tuple[Sequence[bytes | None], NDArray[np.int64], NDArray[np.int64]]:
    """Values, offsets and timestamps; keys and headers are not read."""
    values: Sequence[bytes | None]
    if isinstance(messages, Messages):
        values, offsets, timestamps = messages.values(), messages.offsets(), messages.timestamps()
    else:
        values = [message.value for message in messages]
        offsets = [message.offset for message in messages]
        timestamps = [message.timestamp for message in messages]
    return values, np.array(offsets, np.int64), np.array(timestamps, np.int64)
