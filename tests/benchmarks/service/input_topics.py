"""Filled input topics, and streams on them, which are removed in the end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from stream_fs.kafka import Topics as ServiceTopics
from stream_fs.service.configuration import Configuration, load
from stream_fs.service.topics import topic_specs
from tests.benchmarks.service.records import Mix
from tests.support.topics import Topics, flush

TIMEOUT = 600.0
"""Seconds; far more than anything takes."""

Settings = dict[str, dict[str, Any]]
"""Sections of the configuration."""


@dataclass(frozen=True)
class Source:
    """An input topic with `count` records in each of its partitions."""

    topic: str
    mix: Mix
    count: int
    partitions: int
    record_bytes: float


@dataclass(frozen=True)
class Stream:
    """A stream on a source: its configuration, and the file that holds it."""

    source: Source
    path: Path
    configuration: Configuration

    @property
    def chunks(self) -> int:
        """Whole chunks of each partition."""
        cut = self.configuration.stream_settings().chunk_policy
        return 1 + (self.source.count - cut.first) // cut.records


class Workspace:
    """A broker, and a folder for files."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.bootstrap = bootstrap
        self.folder = folder
        self.topics = Topics(bootstrap)

    @contextmanager
    def source(self, mix: Mix, count: int, partitions: int = 1) -> Iterator[Source]:
        """A topic with these records, removed at the end of the block."""
        topics = Topics(self.bootstrap)
        topic = topics.create("bench", partitions=partitions)
        try:
            records = mix.records(count)
            fill(self.bootstrap, topic, records, count, partitions)
            size = sum(map(len, records)) / len(records)
            yield Source(topic, mix, count, partitions, size)
        finally:
            topics.remove()

    @contextmanager
    def stream(self, source: Source, settings: Settings | None = None) -> Iterator[Stream]:
        """A new stream on a source, with a group and topics of its own."""
        name = self.topics.unique("stream")
        path = self.folder / f"{name}.toml"
        path.write_text(configured(name, source, self.bootstrap, settings or {}), encoding="utf-8")
        configuration = load(path, {})
        topics = ServiceTopics(configuration.kafka_settings())
        made = topics.create(topic_specs(configuration, topics))
        try:
            yield Stream(source, path, configuration)
        finally:
            topics.delete(made)


def configured(name: str, source: Source, bootstrap: str, settings: Settings) -> str:
    """A configuration file; `settings` override those of every stream here."""
    tables: Settings = {
        "stream": {"name": name, "topics": [source.topic]},
        "selector": {"clusters": 10},
        "state": {"topic": f"{{topic}}.{name}"},
        "kafka": {"bootstrap": bootstrap},
        "service": {"port": 0},
        "log": {"format": "json"},
    }
    for section, values in settings.items():
        tables[section] = {**tables.get(section, {}), **values}
    views = "".join(f"[[views]]\n{_lines(table)}" for table in source.mix.tables)
    return views + "".join(f"[{section}]\n{_lines(table)}" for section, table in tables.items())


def _lines(table: dict[str, Any]) -> str:
    return "".join(
        f"{json.dumps(key) if '.' in key else key} = {json.dumps(value)}\n"
        for key, value in table.items()
        if not isinstance(value, dict)
    )


def fill(bootstrap: str, topic: str, records: Sequence[bytes], count: int, partitions: int) -> None:
    """Send the records in turn, `count` to each partition."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 50, "queue.buffering.max.kbytes": 65_536}
    )
    for number in range(count):
        for partition in range(partitions):
            while True:
                try:
                    producer.produce(topic, records[number % len(records)], partition=partition)
                    break
                except BufferError:
                    producer.poll(0.1)
    flush(producer, TIMEOUT)
