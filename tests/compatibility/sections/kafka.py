"""The service on a real broker: alone, and after the other side was killed."""

from __future__ import annotations

import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from stream_fs.broker import running_broker
from tests.compatibility.cases import CASES, LETTERS, PARTITIONS, RANKINGS, STATE, Case
from tests.compatibility.formats import reworded, without_additions
from tests.compatibility.releases import Runner
from tests.compatibility.sections import Finding, Options, finding

NAMES: Final = ("default", "default-named", "classical-sparse")
_PATIENCE_SECONDS: Final = 120.0
_KILLED_AT: Final = 4
"""Rankings."""


def compare(old: Runner, new: Runner, options: Options) -> Iterator[Finding]:
    """Some cases, on a broker of their own."""
    with running_broker() as broker, tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if case.name in NAMES and options.cases in case.name:
                stream = _Stream(case, broker.bootstrap, Path(folder), options.seed)
                yield _case(stream, old, new)


def _case(stream: _Stream, old: Runner, new: Runner) -> Finding:
    before, now = stream.journey([old]), stream.journey([new])
    # With linger, how many chunks share a transaction is a matter of time.
    timed = stream.case.linger > 0
    pairs = [("undisturbed", before, now)]
    if timed:
        pairs = [("undisturbed", _end(before), _end(now))]
    for first, second in ((old, new), (new, old)):
        found = stream.journey([first, second])
        pairs.append((f"{first.name} killed, then {second.name}", _end(before), _end(found)))
    return finding("kafka", f"{stream.case.name}, linger {stream.case.linger:g}", pairs)


def _end(topics: dict[str, Any]) -> dict[str, Any]:
    """What does not depend on interruptions: of a state, the last snapshot."""
    return {**topics, STATE: [_last(partition) for partition in topics[STATE]]}


def _last(records: list[list[Any]]) -> list[Any]:
    """The parts of the last snapshot, in whichever slot; its manifest has them in a checksum."""
    newest = max(n for n, record in enumerate(records) if record[1].endswith(b"/manifest"))
    slot = records[newest][1].removesuffix(b"manifest")
    parts = [record[2] for record in records[newest + 1 :] if record[1].startswith(slot)]
    return [records[newest][2], parts]


class _Stream:
    """The input topic of a case."""

    def __init__(self, case: Case, bootstrap: str, folder: Path, seed: int) -> None:
        self.case = case
        self._topic = f"in-{case.name}"
        self._bootstrap = bootstrap
        self._folder = folder
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._journeys = 0
        self._group = f"group of {case.name}"
        inputs = case.inputs(seed)
        # The records are years old.
        kept = {"retention.ms": "-1"}
        topic = NewTopic(self._topic, num_partitions=PARTITIONS, config=kept)
        self._admin.create_topics([topic])[self._topic].result(_PATIENCE_SECONDS)
        self._produce(inputs)
        self._config = folder / f"{case.name}.toml"
        text = case.config.replace('"localhost:1"', f'"{bootstrap}"')
        text = text.replace('topics = ["in"]', f'topics = ["{self._topic}"]')
        text = text.replace('"group / of golden"', f'"{self._group}"')
        # A member that is killed holds its partitions as long as this.
        short = 'properties = { "session.timeout.ms" = 6000, "heartbeat.interval.ms" = 1000 }'
        self._config.write_text(text.replace("[service]", f"{short}\n[service]"), "utf-8")

    def journey(self, sides: Sequence[Runner]) -> dict[str, Any]:
        """All topics, after these processes; each but the last is killed on its way."""
        self._journeys += 1
        own = f"{self.case.name}-{self._journeys}"
        names = {
            RANKINGS: f"{RANKINGS}-{own}",
            LETTERS: f"{LETTERS}-{own}",
            STATE: f"{self._topic}.state-{own}",
        }
        settings = [
            f"output.topic={names[RANKINGS]}",
            f"dead_letters.topic={names[LETTERS]}",
            f"state.topic={{topic}}.state-{own}",
        ]
        flags = [f"--config={self._config}", *(f"--set={setting}" for setting in settings)]
        sides[0].command(["topics", "create", *flags])
        log = self._folder / f"{self.case.name}-{self._journeys}.log"

        def run(side: Runner, goal: int, *more: str, kill: bool = False) -> None:
            port = _free_port()
            command = ["run", *flags, *more, f"--set=service.port={port}"]
            with self._consumer(names[RANKINGS], 0) as consumer:
                published = _Count(consumer)
                _end_at(side.started(command, log), port, log, lambda: published() >= goal, kill)

        for side in sides[:-1]:
            run(side, _KILLED_AT, "--set=merge.enabled=false", kill=True)
            if len(self._read(names[RANKINGS], 0)) == self.case.rankings:
                raise RuntimeError(f"{side.name} was killed after its last ranking: try again")
        run(sides[-1], self.case.rankings, "--set=merge.enabled=false")
        # There are no new records, so what it merges does not depend on the time.
        run(sides[-1], self.case.rankings + 1)
        found = self._topics(names)
        self._admin.delete_consumer_groups([self._group])[self._group].result(_PATIENCE_SECONDS)
        return found

    def _topics(self, names: dict[str, str]) -> dict[str, Any]:
        content = {
            name: [
                {"records": self._read(topic, number)}
                for number in range(PARTITIONS if name == STATE else 1)
            ]
            for name, topic in names.items()
        }
        plain = without_additions(content, rankings=RANKINGS, states=[STATE])
        letters: dict[bytes, list[Any]] = {}
        rankings: dict[bytes, list[Any]] = {}
        for *_, key, value, headers in plain[LETTERS][0]["records"]:
            place = dict(map(tuple, headers))["stream-fs-partition"]
            letters.setdefault(place, []).append([key, value, reworded(headers)])
        for *_, key, value, headers in plain[RANKINGS][0]["records"]:
            rankings.setdefault(key, []).append([value, headers])
        return {
            RANKINGS: dict(sorted(rankings.items())),
            LETTERS: dict(sorted(letters.items())),
            STATE: [
                [[record[0], *record[2:]] for record in partition["records"]]
                for partition in plain[STATE]
            ],
        }

    def _produce(self, inputs: Sequence[Sequence[Any]]) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "log_level": 0})
        for number, messages in enumerate(inputs):
            for value, key, headers, timestamp in messages:
                producer.produce(
                    self._topic,
                    value,
                    key,
                    number,
                    timestamp=timestamp,
                    headers=[(name, content) for name, content in headers],
                )
            if producer.flush(_PATIENCE_SECONDS):
                raise TimeoutError("records were not written")

    @contextmanager
    def _consumer(self, topic: str, partition: int) -> Iterator[Consumer]:
        """Reads what is committed, from the beginning, without delay."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "reader of golden",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 5,
                "log_level": 0,
            }
        )
        try:
            consumer.assign([TopicPartition(topic, partition, 0)])
            yield consumer
        finally:
            consumer.close()

    def _read(self, topic: str, partition: int) -> list[list[Any]]:
        """What is committed: offset, no timestamp, key, value, headers."""
        found: list[list[Any]] = []
        with self._consumer(topic, partition) as consumer:
            while True:
                for message in consumer.consume(500, 0.1):
                    if (error := message.error()) is None:
                        headers = [list(header) for header in message.headers() or ()]
                        found.append([message.offset(), 0, message.key(), message.value(), headers])
                    elif error.name() == "_PARTITION_EOF":
                        return found
                    else:
                        raise KafkaException(error)


class _Count:
    """The number of records that a consumer has received so far."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._count = 0

    def __call__(self) -> int:
        while (message := self._consumer.poll(0.001)) is not None:
            self._count += message.error() is None
        return self._count


def _end_at(
    process: subprocess.Popen[bytes], port: int, log: Path, reached: Callable[[], bool], kill: bool
) -> None:
    """Kill a process as soon as the condition is true; or shut it down, when it is ready."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    try:
        while not reached() or not (kill or _is_ready(port)):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"it does not progress: {log.read_text()[-2000:]}")
        if not kill:
            process.send_signal(signal.SIGTERM)
            if process.wait(_PATIENCE_SECONDS):
                raise RuntimeError(f"it does not shut down: {log.read_text()[-2000:]}")
    finally:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _is_ready(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
