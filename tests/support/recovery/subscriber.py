"""A subscriber that uses only a Kafka client, JSON and the published schema.

It checks by `sequence` and `offsets` alone that nothing is missing or duplicated.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from jsonschema import Draft202012Validator

from tests.support.topics import end_of

SCHEMA = Path(__file__).parents[3] / "schemas" / "ranking.v1.json"
TIMEOUT_SECONDS = 90.0
"""Longer than a broker keeps the transaction of a killed producer open."""

Headers = tuple[tuple[str, bytes | None], ...]


class Received(NamedTuple):
    """A message without its timestamp and its offset, which aborted messages shift."""

    key: bytes | None
    value: bytes | None
    headers: Headers


class Subscriber:
    """Reads the only partition of a topic from its beginning, and keeps all messages."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        isolation: Literal["read_committed", "read_uncommitted"] = "read_committed",
    ) -> None:
        self.messages: list[Received] = []
        self._place = TopicPartition(topic, 0, 0)
        self._next = 0
        self._address = {"bootstrap.servers": bootstrap, "group.id": "unused", "log_level": 0}
        self._consumer = Consumer(
            {
                **self._address,
                "isolation.level": isolation,
                "enable.auto.commit": False,
                # Gives the position where the last messages are aborted.
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 20,
            }
        )
        self._consumer.assign([self._place])

    def listen(self, seconds: float) -> int:
        """Receive messages for up to so many seconds; the number received so far."""
        for message in self._consumer.consume(500, seconds):
            error = message.error()
            if error is None:
                headers = cast(Headers, tuple(message.headers() or ()))
                self.messages.append(Received(message.key(), message.value(), headers))
            elif error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            self._next = max(self._next, (message.offset() or 0) + (error is None))
        return len(self.messages)

    def decided(self) -> list[Received]:
        """All messages before the first open transaction."""
        return self._up_to(self._consumer)

    def everything(self) -> list[Received]:
        """All committed messages, when no transaction is open any more."""
        with_open_ones = Consumer({**self._address, "isolation.level": "read_uncommitted"})
        try:
            return self._up_to(with_open_ones)
        finally:
            with_open_ones.close()

    def close(self) -> None:
        self._consumer.close()

    def _up_to(self, consumer: Consumer) -> list[Received]:
        """All messages before the end that this consumer sees."""
        end = end_of(consumer, self._place.topic, self._place.partition)
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while self._next < end:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self._place.topic}: at {self._next} of {end}")
            self.listen(0.05)
        return self.messages


def problems(values: Iterable[bytes | None]) -> list[str]:
    """Problems of a series of rankings, in the order of their arrival.

    Each must be valid; those of a stream and partition must be numbered from 1, and each must
    begin where the one before ends. Merged ones have numbers of their own.
    """
    schema = Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    found: list[str] = []
    series: defaultdict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for number, value in enumerate(values):
        ranking = json.loads(value or b"null")
        errors = [error.message for error in schema.iter_errors(ranking)]
        if errors:
            found.append(f"message {number} is not a ranking: {'; '.join(errors)}")
        else:
            series[ranking["stream"], ranking["topic"], ranking["partition"]].append(ranking)
    for rankings in series.values():
        found += _gaps(rankings)
    return found


def _gaps(rankings: Sequence[dict[str, Any]]) -> list[str]:
    found = []
    number = 0
    following: int | None = None
    for ranking in rankings:
        sequence, offsets = ranking["sequence"], ranking["offsets"]
        if sequence != number + 1:
            found.append(f"ranking {sequence} follows ranking {number}")
        if offsets is not None:
            if following not in (None, offsets["from"]):
                found.append(f"ranking {sequence} begins at {offsets['from']}, not at {following}")
            following = offsets["next"]
        number = sequence
    return found
