"""The loop that one writes with confluent-kafka alone: `python -m … JOB`.

At least once: state and offsets every so many chunks, and the rankings in between once more after
a crash. Exactly once: rankings, state and offsets in one transaction, as in the client's manual.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from tests.benchmarks.peers.by_hand import Selection
from tests.benchmarks.peers.job import CHUNK, CONSUMING, PRODUCING, Job

SECONDS: Final = 60.0


def main(job: Job) -> None:
    state = f"{job.run}.state"
    selection = Selection(job)
    producer = Producer(_producing(job))
    if job.exactly_once:
        producer.init_transactions(SECONDS)
    if parts := _kept(job, state):
        selection.restore(parts)
    consumer = Consumer(
        {
            **CONSUMING,
            "bootstrap.servers": job.bootstrap,
            "group.id": job.run,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([job.topic])
    waiting: list[bytes] = []
    open_transaction = False
    while True:
        for message in consumer.consume(CHUNK - len(waiting), 0.1):
            if (error := message.error()) is not None:
                raise KafkaException(error)
            waiting.append(message.value() or b"")
            position = TopicPartition(job.topic, 0, (message.offset() or 0) + 1)
        if len(waiting) < CHUNK:
            continue
        ranking = selection.fold(waiting)
        waiting = []
        if job.exactly_once and not open_transaction:
            producer.begin_transaction()
            open_transaction = True
        producer.produce(job.rankings, ranking, key=job.topic)
        producer.poll(0)
        if selection.sequence % job.every:
            continue
        for number, part in enumerate(selection.saved()):
            producer.produce(state, part, key=str(number))
        if job.exactly_once:
            producer.flush()
            producer.send_offsets_to_transaction(
                [position], consumer.consumer_group_metadata(), SECONDS
            )
            producer.commit_transaction(SECONDS)
            open_transaction = False
        else:
            producer.flush()
            consumer.commit(offsets=[position], asynchronous=False)


def _producing(job: Job) -> dict[str, str]:
    properties = {**PRODUCING, "bootstrap.servers": job.bootstrap}
    if job.exactly_once:
        return {**properties, "transactional.id": job.run}
    return {**properties, "enable.idempotence": "true"}


def _kept(job: Job, topic: str) -> list[bytes]:
    """The parts of the last state."""
    reader = Consumer(
        {
            "bootstrap.servers": job.bootstrap,
            "group.id": job.run,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    where = TopicPartition(topic, 0, 0)
    reader.assign([where])
    parts: dict[bytes, bytes] = {}
    while (message := reader.poll(SECONDS)) is not None and message.error() is None:
        parts[_bytes(message.key())] = _bytes(message.value())
    reader.close()
    return [parts[key] for key in sorted(parts, key=int)]


def _bytes(value: str | bytes | None) -> bytes:
    assert isinstance(value, bytes)
    return value


if __name__ == "__main__":
    main(Job.read(Path(sys.argv[1])))
