"""The service on a filled topic, and its time and memory (Linux)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from prometheus_client.parser import text_string_to_metric_families

from stream_fs.kafka import Topics
from stream_fs.service.configuration import load
from stream_fs.service.topics import topic_specs
from tests.support.topics import flush

ROOT: Final = Path(__file__).parents[2]
SECONDS: Final = 600.0
"""Far more than anything takes."""
_TICK: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Case:
    """A stream: its views and their records, how many chunks there are, in how many partitions."""

    name: str
    views: Sequence[dict[str, Any]]
    records: Sequence[bytes]
    """Sent again and again, in turn."""
    chunks: int
    clusters: int = 10
    chunk: int = 500
    partitions: int = 1
    format: str = "msgpack"
    top: str = '"all"'

    @property
    def first(self) -> int:
        """Records of the first chunk."""
        return max(self.chunk, 20 * self.clusters)

    @property
    def per_partition(self) -> int:
        return self.first + (self.chunks - 1) * self.chunk

    @property
    def record_bytes(self) -> float:
        return sum(map(len, self.records)) / len(self.records)


@dataclass(frozen=True)
class Served:
    """What a process has shown; `rate` and `per_core` are records per second after first chunks."""

    rate: float
    """By the clock on the wall."""
    per_core: float
    """By the time that processors spent on this process."""
    peak_bytes: int
    threads: int
    update: float
    """Seconds, the mean of all chunks."""
    ranking: float
    transaction: float
    snapshot_bytes: float
    ready: float
    """Seconds from the start of the process to partitions restored."""


def serve(case: Case, bootstrap: str, folder: Path) -> Served:
    """Fill a topic, let the service process it, and remove everything."""
    name = f"capacity-{uuid.uuid4().hex[:8]}"
    path = folder / f"{name}.toml"
    path.write_text(_configuration(case, name, bootstrap), encoding="utf-8")
    configuration = load(path, {})
    topics = Topics(configuration.kafka_settings())
    made = topics.create(topic_specs(configuration, topics, partitions=case.partitions))
    try:
        _fill(case, name, bootstrap)
        return _measured(case, path)
    finally:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for deleted in admin.delete_topics(made).values():
            deleted.result(SECONDS)


def _configuration(case: Case, name: str, bootstrap: str) -> str:
    views = "".join(f"[[views]]\n{_table(view)}" for view in case.views)
    return (
        f'[stream]\nname = "{name}"\ntopics = ["{name}"]\nformat = "{case.format}"\n{views}'
        f"[selector]\nclusters = {case.clusters}\n[chunk]\nrecords = {case.chunk}\n"
        f'[output]\ntop = {case.top}\n[kafka]\nbootstrap = "{bootstrap}"\n'
        '[service]\nport = 0\n[log]\nformat = "json"\n'
    )


def _table(values: dict[str, Any]) -> str:
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())


def _fill(case: Case, topic: str, bootstrap: str) -> None:
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 50, "queue.buffering.max.kbytes": 65_536}
    )
    for number in range(case.per_partition):
        for partition in range(case.partitions):
            while True:
                try:
                    producer.produce(
                        topic, case.records[number % len(case.records)], partition=partition
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
    flush(producer, SECONDS)


def _measured(case: Case, path: Path) -> Served:
    log = path.with_suffix(".log")
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    began = time.time()
    with log.open("wb") as to:
        process = subprocess.Popen(
            [sys.executable, "-m", "stream_fs.cli", "run", "--config", str(path)],
            env=environment,
            stderr=to,
        )
    try:
        spent = _follow(case, process, log)
        events = _events(log)
        scraped = _scraped(events)
        peak, threads = _status(process.pid, "VmHWM") * 1024, _status(process.pid, "Threads")
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0, log.read_text(encoding="utf-8")
    finally:
        process.kill()
        process.wait()
    commits = [_seconds(event) for event in events if event["event"] == "chunk committed"]
    restored = [_seconds(e) for e in events if e["event"] == "task is running"][: case.partitions]
    # The first chunk of a partition is another one, and everything is warm behind it.
    start, end = commits[case.partitions - 1], commits[-1]
    records = (len(commits) - case.partitions) * case.chunk
    chunks = scraped["stream_fs_update_seconds_count"]
    return Served(
        rate=records / (end - start),
        # Of a short case both moments may fall on one look at the processor time.
        per_core=records / max(_at(spent, end) - _at(spent, start), 1 / _TICK),
        peak_bytes=peak,
        threads=threads,
        update=scraped["stream_fs_update_seconds_sum"] / chunks,
        ranking=scraped["stream_fs_ranking_seconds_sum"] / chunks,
        transaction=scraped["stream_fs_transaction_seconds_sum"] / chunks,
        snapshot_bytes=scraped["stream_fs_snapshot_bytes"] / case.partitions,
        ready=max(restored) - began,
    )


def _follow(case: Case, process: subprocess.Popen[bytes], log: Path) -> list[tuple[float, float]]:
    """Until every chunk is committed: moments, and the processor time spent up to them."""
    spent: list[tuple[float, float]] = []
    deadline = time.monotonic() + SECONDS
    while log.read_bytes().count(b'"chunk committed"') < case.chunks * case.partitions:
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{case.name}: {log.read_text(encoding='utf-8')[-2000:]}")
        spent.append((time.time(), processor_seconds(process.pid)))
        time.sleep(0.02)
    spent.append((time.time(), processor_seconds(process.pid)))
    return spent


def processor_seconds(pid: int) -> float:
    """What the processors have spent on a process so far, its threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _status(pid: int, name: str) -> int:
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    (line,) = (line for line in text.splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1])


def _events(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def _seconds(event: dict[str, Any]) -> float:
    return datetime.fromisoformat(event["time"]).timestamp()


def _scraped(events: Sequence[dict[str, Any]]) -> dict[str, float]:
    """The sums of all series, by name."""
    (address,) = (event["address"] for event in events if event["event"] == "listening")
    with urllib.request.urlopen(f"{address}/metrics", timeout=SECONDS) as answer:
        text = answer.read().decode()
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


def _at(spent: Sequence[tuple[float, float]], moment: float) -> float:
    """The processor time up to a moment."""
    return next((seconds for at, seconds in spent if at >= moment), spent[-1][1])
