"""Runs jobs on the present code: ``python -m tests.compatibility.present JOBS RESULTS``.

The counterpart of `release_0_1_0`; see `cases` for what a job is.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgpack

from stream_fs.pipeline.events import ReplayDiverged
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.service.configuration import load
from tests.compatibility.cases import LETTERS, PARTITIONS, RANKINGS, STATE, TOPIC, Job
from tests.support.memory_broker import MemoryBroker
from tests.support.simulated_process import SimulatedProcess

Result = dict[str, Any]

TOPICS: Mapping[str, int] = {TOPIC: PARTITIONS, STATE: PARTITIONS, RANKINGS: 1, LETTERS: 1}
"""How many partitions each has."""
_TURNS = 500
"""Enough for any process of a job to become idle."""


@dataclass
class Running:
    """The topics of a job while its steps are run."""

    job: Job
    broker: MemoryBroker = field(default_factory=MemoryBroker)
    diverged: int = 0
    """Replayed chunks that were not the same as when they were published."""

    def __post_init__(self) -> None:
        self._settings = settings(self.job["config"])
        for name, partitions in TOPICS.items():
            self.broker.create(name, partitions)
            for number, found in enumerate((self.job["start"] or {}).get(name, ())):
                _fill(self.broker, name, number, found)

    def result(self) -> Result:
        """Run all steps: every topic in the end, and the ends of all partitions after each step."""
        ends = []
        for kind, *details in self.job["steps"]:
            if kind == "produce":
                self._produce(*details)
            else:
                self._run(*details)
            ends.append(
                {n: [self.broker.log(n, p).end for p in range(k)] for n, k in TOPICS.items()}
            )
        topics = {n: [_content(self.broker, n, p) for p in range(k)] for n, k in TOPICS.items()}
        return {"topics": topics, "ends": ends, "diverged": self.diverged}

    def _produce(self, partition: int, messages: list[list[Any]]) -> None:
        for value, key, headers, timestamp in messages:
            self.broker.produce(
                TOPIC,
                value,
                partition=partition,
                key=key,
                headers=tuple((name, content) for name, content in headers),
                timestamp=timestamp,
            )

    def _run(self, how: Mapping[str, Any]) -> None:
        crash = None if how["crash"] is None else (how["crash"][0], how["crash"][1])
        merging = self._settings.merge_every if how["merge"] else None
        process = SimulatedProcess(self.broker, replace(self._settings, merge_every=merging), crash)
        if process.run(_TURNS):
            process.worker.stop() if how["end"] == "shut down" else process.kill()
        self.diverged += len(process.of(ReplayDiverged))


def run(job: Job) -> Result:
    """The result of a job."""
    return Running(job).result()


def settings(text: str) -> StreamSettings:
    """What a configuration file means to the pipeline."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "golden.toml"
        path.write_text(text, encoding="utf-8")
        return load(path, {}).stream_settings()


def _fill(broker: MemoryBroker, topic: str, number: int, found: Mapping[str, Any]) -> None:
    """Append records at their offsets; between them are ends of transactions."""
    log = broker.log(topic, number)
    for offset, timestamp, key, value, headers in found["records"]:
        while log.end < offset:
            log.append(None, None, marker=True)
        log.append(key, value, tuple((name, content) for name, content in headers), timestamp)
    while log.end < found["end"]:
        log.append(None, None, marker=True)


def _content(broker: MemoryBroker, topic: str, number: int) -> dict[str, Any]:
    records = [
        [m.offset, m.timestamp, m.key, m.value, [list(header) for header in m.headers]]
        for m in broker.committed(topic)
        if m.partition == number
    ]
    return {"end": broker.log(topic, number).end, "records": records}


def main(jobs: str, results: str) -> None:
    """Run every job of a file, and write their results into another."""
    given = msgpack.unpackb(Path(jobs).read_bytes())
    Path(results).write_bytes(msgpack.packb([run(job) for job in given]))


if __name__ == "__main__":
    main(*sys.argv[1:])
