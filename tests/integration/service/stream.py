"""A stream of a test's own: its configuration, topics, input and output."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka import Message as Produced

from stream_fs.kafka import Topics as KafkaTopics
from stream_fs.pipeline.ports import Partition
from stream_fs.records import Headers, Message
from stream_fs.service.configuration import Configuration, load, problems
from stream_fs.service.topics import topic_specs
from stream_fs.wire.records.encoder import encode_record
from tests.contracts.backend import Published
from tests.integration.kafka.backend import KafkaBackend
from tests.support.processes import wait_until
from tests.support.topics import TIMEOUT_SECONDS, Topics, end_of, flush

Changes = Mapping[str, Any]
"""Changes of a configuration, by `section.key` or by `section`."""
Output = Mapping[Partition, Sequence[Published]]
"""Published messages by input partition, in their order."""

DIMENSIONS: Final = {"a": 6, "b": 4}
CLUSTERS: Final = 2
CHUNK: Final = 15
FIRST: Final = CLUSTERS * 20
"""Records of the first chunk."""


def declared(**changes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The views as they are declared, with changes by view."""
    return [
        {"name": name, "dimension": dimension, **changes.get(name, {})}
        for name, dimension in DIMENSIONS.items()
    ]


def rows(count: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Rows of two clusters, a view missing from some."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        group = int(rng.integers(CLUSTERS))
        views = {
            name: (rng.random(dimension) + group * (np.arange(dimension) % 2)).astype(np.float32)
            for name, dimension in DIMENSIONS.items()
        }
        missing = rng.random()
        if missing < 0.3:
            del views["a"]
        elif missing < 0.6:
            del views["b"]
        yield views


def chunks(count: int, seed: int = 0) -> list[bytes]:
    """As many records as the first so many chunks of a partition need."""
    return [encode_record(views) for views in rows(FIRST + (count - 1) * CHUNK, seed)]


ALONE: Changes = {"output.linger_seconds": 0.0}
"""Every chunk in a transaction of its own, so that these can be counted."""


class Stream:
    """Topics on the broker, and a configuration that names them; `changes` override the default."""

    def __init__(
        self,
        topics: Topics,
        folder: Path,
        changes: Changes | None = None,
        *,
        partitions: int = 1,
        inputs: int = 1,
        create: bool = True,
        producing: Mapping[str, Any] | None = None,
    ) -> None:
        """`producing` are properties of the producer that feeds the input topics."""
        self.topics = topics
        self.folder = folder
        self.name = topics.unique("stream")
        self.inputs = [f"{self.name}-{number}" for number in range(inputs)]
        self.changes = dict(changes or {})
        self.partitions = [
            Partition(topic, number) for topic in self.inputs for number in range(partitions)
        ]
        self.fed: dict[Partition, list[Message]] = {place: [] for place in self.partitions}
        self.reached: dict[Partition, int] = defaultdict(int)
        """The last committed chunk in the events of all members."""
        self._began = round(time.time() * 1000) - 3_600_000
        # Silent: the broker may be stopped on purpose.
        address = {"bootstrap.servers": topics.bootstrap, "log_level": 0}
        # One request at a time: what follows the first to a new partition may be written before it,
        # where the broker does not lead it yet when the first arrives (KAFKA-15591).
        order = {"enable.idempotence": True, "max.in.flight.requests.per.connection": 1}
        self._producer = Producer({**address, **order, "linger.ms": 0, **(producing or {})})
        self._uncommitted, self._decided = (
            Consumer({**address, "group.id": topics.unique("reader"), "isolation.level": level})
            for level in ("read_uncommitted", "read_committed")
        )
        self._files = 0
        self._created: list[str] = []
        if create:
            self.create(partitions)

    @property
    def only(self) -> Partition:
        """The only partition."""
        (partition,) = self.partitions
        return partition

    def file(self, changes: Changes | None = None) -> Path:
        """A configuration file with these changes."""
        sections: dict[str, Any] = {
            "stream": {"name": self.name, "topics": self.inputs},
            "views": declared(),
            "selector": {"clusters": CLUSTERS, "max_iterations": 10},
            "chunk": {"records": CHUNK},
            "checkpoint": {"every_chunks": 3},
            "kafka": {
                "bootstrap": self.topics.bootstrap,
                "properties": {"heartbeat.interval.ms": 300, "session.timeout.ms": 6000},
            },
            "service": {"port": 0, "grace_seconds": 5.0},
        }
        for name, value in {**self.changes, **(changes or {})}.items():
            section, _, key = name.partition(".")
            if key:
                sections.setdefault(section, {})[key] = value
            else:
                sections[section] = value
        self._files += 1
        path = self.folder / f"{self.name}-{self._files}.toml"
        text = "".join(
            f"{problems.toml_key(name)} = {problems.toml_value(v)}\n"
            for name, v in sections.items()
        )
        path.write_text(text, encoding="utf-8")
        return path

    def configuration(self, changes: Changes | None = None) -> Configuration:
        return load(self.file(changes), {})

    def create(self, partitions: int) -> None:
        """Make the topics that do not exist, as `stream-fs topics create` does."""
        configuration = self.configuration()
        topics = KafkaTopics(configuration.kafka_settings())
        plans = topic_specs(configuration, topics, partitions=partitions)
        self._created += topics.create(plans)
        for plan in plans:
            if plan.name in self._created:
                self.topics.await_leaders(plan.name, plan.partitions)

    def grow(self, partitions: int) -> None:
        """Add partitions, up to so many, to the only input topic and to its state."""
        (topic,) = self.inputs
        for name in (self.configuration().state_topics()[topic], topic):
            self.topics.grow(name, partitions)
            self._producer.list_topics(name, TIMEOUT_SECONDS)  # so that it knows of them, too
        new = [Partition(topic, number) for number in range(len(self.partitions), partitions)]
        self.partitions += new
        self.fed |= {place: [] for place in new}

    def remove(self) -> None:
        self._uncommitted.close()
        self._decided.close()
        if self._created:
            for deleted in self.topics.admin.delete_topics(self._created).values():
                deleted.result(TIMEOUT_SECONDS)
            self._created.clear()

    # --- input --------------------------------------------------------------------------------

    def feed(
        self,
        values: Sequence[bytes | None],
        partition: Partition | None = None,
        timestamps: Sequence[int] | None = None,
        *,
        key: bytes | None = None,
        headers: Headers | None = None,
    ) -> None:
        """Append records, a second apart by default; each has a key and headers of its own."""
        place = self.only if partition is None else partition
        known = self.fed[place]
        first = len(known)
        for index, value in enumerate(values):
            offset = first + index
            since = offset * 1000 if timestamps is None else timestamps[index]
            message = Message(
                *place,
                offset,
                self._began + since,
                f"key-{offset}".encode() if key is None else key,
                value,
                _marks(place, offset) if headers is None else headers,
            )
            known.append(message)
            self._producer.produce(
                place.topic,
                value,
                message.key,
                place.number,
                on_delivery=_Expected(offset),
                timestamp=message.timestamp,
                headers=list(message.headers),
            )
        flush(self._producer)

    def feed_all(self, count: int, seed: int = 0) -> None:
        """Append so many chunks to every partition; the first chunk is larger."""
        for number, partition in enumerate(self.partitions):
            need = count * CHUNK + (0 if self.fed[partition] else FIRST - CHUNK)
            found = [encode_record(views) for views in rows(need, 100 * seed + number)]
            self.feed(found, partition)

    # --- output --------------------------------------------------------------------------------

    def rankings(self) -> Output:
        """Every published ranking of a partition."""
        found: dict[Partition, list[Published]] = {place: [] for place in self.partitions}
        for published in self.committed(self.configuration().output.topic).values():
            if (place := ranked(published)) is not None:
                found[place].append(published)
        return found

    def merged(self) -> list[dict[str, Any]]:
        """Every published ranking of the whole stream."""
        committed = self.committed(self.configuration().output.topic).values()
        return [json.loads(one.value or b"") for one in committed if ranked(one) is None]

    def letters(self) -> Output:
        """Every dead letter."""
        found: dict[Partition, list[Published]] = {place: [] for place in self.partitions}
        for published in self.committed(self.configuration().dead_letters.topic).values():
            found[origin(published)].append(published)
        return found

    def state(self, partition: Partition | None = None) -> Mapping[int, Published]:
        """The committed records of a state partition, by offset."""
        place = self.only if partition is None else partition
        topic = self.configuration().state_topics()[place.topic]
        return self.committed(topic, place.number)

    def end(self, topic: str, partition: int = 0) -> int:
        """The end of a partition of any topic, open transactions and markers included."""
        return end_of(self._uncommitted, topic, partition)

    def committed(self, topic: str, partition: int = 0) -> Mapping[int, Published]:
        """The committed records of a partition of any topic, by offset.

        A commit is acknowledged before its records are visible, so this waits until every
        transaction is decided; it does not end while one is open.
        """
        end = self.end(topic, partition)
        wait_until(
            lambda: end_of(self._decided, topic, partition) >= end,
            f"a transaction in {topic} is open",
        )
        return KafkaBackend(self.topics).committed(topic, partition)


def ranked(published: Published) -> Partition | None:
    """The partition that a ranking is about; None of a merged one."""
    ranking = json.loads(published.value or b"")
    if ranking["scope"] == "merged":
        return None
    return Partition(ranking["topic"], ranking["partition"])


def origin(letter: Published) -> Partition:
    """The partition that a dead letter was read from."""
    headers = dict(letter.headers)
    topic, number = headers["stream-fs-topic"], headers["stream-fs-partition"]
    return Partition((topic or b"").decode(), int(number or b""))


def _marks(place: Partition, offset: int) -> Headers:
    return (("origin", f"{place} {offset}".encode()), ("empty", None))


class _Expected:
    """Makes sure that a record got the offset that the reference assumes."""

    def __init__(self, offset: int) -> None:
        self._offset = offset

    def __call__(self, error: KafkaError | None, message: Produced) -> None:
        assert error is None, error
        # The offset is unknown for a record that was written while its answer was lost.
        offset = message.offset()
        assert offset in (None, self._offset), f"{offset} in place of {self._offset}"
