"""Runs jobs on release 0.1.0, in its own interpreter: ``python release_0_1_0.py JOBS RESULTS``.

The checkout of that release is the working directory and first in the path. All names are those of
that release and must not follow the renames of the present code, which has its counterpart in
`present`. Nothing of the present code is imported.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import msgpack

PACKAGE, TESTS = "stream_" + "fs", "tests"  # joined here, so that no tool takes it for an import


def _of(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Every topic in the end, and the ends of all partitions after each step."""
    brokers = _of(f"{PACKAGE}.pipeline.memory", "MemoryBroker")
    processes = _of(f"{TESTS}.unit.pipeline.lives", "Life")
    settings = _settings(job["config"])
    broker = brokers()
    topics = {"in": 2, "in.state": 2, "out": 1, "dead": 1}
    for name, partitions in topics.items():
        broker.create(name, partitions)
        for number, found in enumerate((job["start"] or {}).get(name, ())):
            _fill(broker.log(name, number), found)
    ends = []
    for kind, *details in job["steps"]:
        if kind == "produce":
            partition, messages = details
            for value, key, headers, timestamp in messages:
                broker.produce(
                    "in",
                    value,
                    partition=partition,
                    key=key,
                    headers=tuple((name, content) for name, content in headers),
                    timestamp=timestamp,
                )
        else:
            (how,) = details
            crash = None if how["crash"] is None else tuple(how["crash"])
            every = settings.merge_every if how["merge"] else None
            process = processes(broker, replace(settings, merge_every=every), crash)
            if process.run(500):
                process.worker.stop() if how["end"] == "shut down" else process.die()
        ends.append(
            {name: [broker.log(name, n).end for n in range(topics[name])] for name in topics}
        )
    found = {
        name: [_content(broker, name, number) for number in range(partitions)]
        for name, partitions in topics.items()
    }
    return {"topics": found, "ends": ends}


def _settings(text: str) -> Any:
    load = _of(f"{PACKAGE}.service.configuration", "load")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "golden.toml"
        path.write_text(text, encoding="utf-8")
        return load(path, {}).stream_settings()


def _fill(log: Any, found: dict[str, Any]) -> None:
    """Append records at their offsets; between them are ends of transactions."""
    for offset, timestamp, key, value, headers in found["records"]:
        while log.end < offset:
            log.append(None, None, marker=True)
        log.append(key, value, tuple((name, content) for name, content in headers), timestamp)
    while log.end < found["end"]:
        log.append(None, None, marker=True)


def _content(broker: Any, topic: str, number: int) -> dict[str, Any]:
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
