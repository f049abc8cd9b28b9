"""When a broker counts as started."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from stream_fs.broker.errors import BrokerUnavailable

STARTED: Final = "Kafka Server started"
"""What Kafka logs when its listeners are open."""

START_SECONDS: Final = 120.0
"""How long a start may take; a few seconds on an idle machine."""

_LOOK_SECONDS: Final = 0.1
_ASK_SECONDS: Final = 5.0


def answers(bootstrap: str, seconds: float) -> bool:
    """Whether an admin client gets the cluster's metadata within the time."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    try:
        return bool(admin.list_topics(timeout=seconds).brokers)
    except KafkaException:
        return False


def await_start(
    bootstrap: str, *, announced: Callable[[], bool], running: Callable[[], bool]
) -> None:
    """Wait until the log has announced the start and the broker answers.

    Asks only after the announcement: a client that is refused first backs off, and complains.
    Raises `BrokerUnavailable` when the process ends before, or after `START_SECONDS`.
    """
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if not running():
            raise BrokerUnavailable("the broker ended while it was starting")
        if announced() and answers(bootstrap, _ASK_SECONDS):
            return
        time.sleep(_LOOK_SECONDS)
    raise BrokerUnavailable(f"the broker did not start within {START_SECONDS:.0f} s")
