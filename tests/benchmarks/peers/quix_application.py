"""The same with Quix Streams: `python -m … JOB`.

A chunk is collected in memory and handed on whole, so that only every 500th message goes through
the stateful step. The state store (RocksDB, with its changelog topic) takes the model when a
checkpoint is due, and checkpoints are counted in messages, so that they fall between chunks. (One
that a rebalance forces in the middle of a chunk would lose that chunk's first records. To keep the
open chunk in the store as well would be right, and slower: the peer is let off.)
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from quixstreams import Application, State

from tests.benchmarks.peers.by_hand import Selection
from tests.benchmarks.peers.job import CHUNK, CONSUMING, PRODUCING, Job


class Steps:
    """What the stream goes through."""

    def __init__(self, job: Job) -> None:
        self._every = job.every
        self._selection = Selection(job)
        self._restored = False
        self._waiting: list[bytes] = []

    def collect(self, value: bytes) -> list[bytes] | None:
        """A chunk when it is full."""
        self._waiting.append(value)
        if len(self._waiting) < CHUNK:
            return None
        chunk, self._waiting = self._waiting, []
        return chunk

    def fold(self, chunk: list[bytes], state: State) -> bytes:
        """The ranking after a chunk."""
        if not self._restored:
            self._restored = True
            parts = [state.get_bytes(number) for number in range(state.get("parts", 0))]
            if parts:
                self._selection.restore(parts)
        ranking = self._selection.fold(chunk)
        if self._selection.sequence % self._every == 0:
            saved = self._selection.saved()
            state.set("parts", len(saved))
            for number, part in enumerate(saved):
                state.set_bytes(number, part)
        return ranking


def main(job: Job) -> None:
    application = Application(
        job.bootstrap,
        consumer_group=job.run,
        auto_offset_reset="earliest",
        commit_every=CHUNK * job.every,
        commit_interval=3600.0,
        processing_guarantee="exactly-once" if job.exactly_once else "at-least-once",
        consumer_extra_config=dict(CONSUMING),
        producer_extra_config=dict(PRODUCING),
        state_dir=job.folder,
        loglevel="WARNING",
    )
    records: Any = application.topic(
        job.topic, value_deserializer="bytes", key_deserializer="bytes"
    )
    rankings: Any = application.topic(
        job.rankings, value_serializer="bytes", key_serializer="bytes"
    )
    steps = Steps(job)
    stream = application.dataframe(records).apply(steps.collect)
    stream = stream.filter(lambda chunk: chunk is not None).apply(steps.fold, stateful=True)
    stream.to_topic(rankings, key=lambda _: job.topic.encode())
    application.run()


if __name__ == "__main__":
    main(Job.read(Path(sys.argv[1])))
