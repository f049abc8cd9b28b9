"""What the topics of a stream have to be like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from stream_fs.checkpoint import part_bytes
from stream_fs.kafka.settings import BATCH_SIZE
from stream_fs.wire.dead_letters import dead_letter_limit

BROKER_DEFAULT: Final = -1
"""The number of replicas that the broker is configured for."""

_DAY_MS: Final = 86_400_000
_BATCH_BYTES: Final = 1_024
"""More than the frame of a batch with one record."""
_STATE_BATCH_BYTES: Final = 4_096
"""The same with a key of the state topic, which contains stream, group and topic."""
_BROKER_TIME: Final = {"message.timestamp.type": "LogAppendTime"}
"""Of what we write: a broker refuses records that are stamped more than an hour ahead of its own
clock, so a clock that is wrong here would stop the stream. Their content has no such time."""


@dataclass(frozen=True)
class TopicPlan:
    """A topic as it is to be created, and what must hold of one that exists."""

    name: str
    partitions: int
    replication: int = BROKER_DEFAULT
    config: Mapping[str, str] = field(default_factory=dict)
    holds_input: bool = False
    """Whether it is an input topic, which is created only on request (`--partitions`)."""
    follows: bool = False
    """Whether fewer partitions would be too few: there is one for each of another topic's."""


def input_plan(
    name: str, partitions: int, largest_message: int, replication: int = BROKER_DEFAULT
) -> TopicPlan:
    """Records to learn from: a compacted topic would lose those that a replay needs."""
    config = {
        "cleanup.policy": "delete",
        "max.message.bytes": str(largest_message + _BATCH_BYTES),
    }
    durable = _durable(replication)
    return TopicPlan(name, partitions, replication, config | durable, holds_input=True)


def rankings_plan(
    name: str, partitions: int, largest_message: int, replication: int = BROKER_DEFAULT
) -> TopicPlan:
    """Complete for a week; the newest ranking of every stream stays for ever."""
    config = {
        "cleanup.policy": "compact",
        "min.compaction.lag.ms": str(7 * _DAY_MS),
        "max.message.bytes": str(largest_message + _BATCH_BYTES),
        **_BROKER_TIME,
    }
    return TopicPlan(name, partitions, replication, config | _durable(replication))


def state_plan(
    name: str, partitions: int, largest_message: int, replication: int = BROKER_DEFAULT
) -> TopicPlan:
    """The truth: as many partitions as its input topic, the newest record of every key kept.

    Compaction leaves the newest segment alone: small ones, so that it does not grow to a gigabyte.
    A batch in it has one part of a snapshot, or several small ones.
    """
    one = part_bytes(largest_message) + _STATE_BATCH_BYTES
    several = min(largest_message, BATCH_SIZE)
    config = {
        "cleanup.policy": "compact",
        "segment.bytes": str(64 * 2**20),
        "min.cleanable.dirty.ratio": "0.2",
        "max.message.bytes": str(max(one, several)),
        **_BROKER_TIME,
    }
    return TopicPlan(name, partitions, replication, config | _durable(replication), follows=True)


def dead_letters_plan(
    name: str, partitions: int, largest_message: int, replication: int = BROKER_DEFAULT
) -> TopicPlan:
    """Bad records with the reason in headers; for a month."""
    config = {
        "cleanup.policy": "delete",
        "retention.ms": str(30 * _DAY_MS),
        "max.message.bytes": str(dead_letter_limit(largest_message)),
        **_BROKER_TIME,
    }
    return TopicPlan(name, partitions, replication, config | _durable(replication))


def missing_topic(plan: TopicPlan) -> str:
    """What to do about a topic that does not exist."""
    if plan.holds_input:
        return (
            f"topic {plan.name} does not exist: check stream.topics, or make it with "
            "`stream-fs topics create --partitions N`"
        )
    return f"topic {plan.name} does not exist: make it with `stream-fs topics create`"


def problems(plan: TopicPlan, partitions: int, config: Mapping[str, str]) -> list[str]:
    """What is wrong with a topic that exists, and what to do about it."""
    found = [] if (lacking := gap(plan, partitions)) is None else [lacking]
    for name, wanted in plan.config.items():
        has = config.get(name)
        if has is None or name not in ("cleanup.policy", *_AT_LEAST):
            continue
        fits = int(has) >= int(wanted) if name in _AT_LEAST else has == wanted
        if not fits:
            rule = "at least " if name in _AT_LEAST else ""
            found.append(
                f"topic {plan.name} has {name}={has}, and needs {rule}{wanted}: "
                f"set {name}={wanted} on the topic"
            )
    return found


def gap(plan: TopicPlan, partitions: int) -> str | None:
    """What to do about partitions that a topic lacks; None where there are enough.

    Others can work meanwhile: it happens when partitions are added to an input topic.
    """
    if not plan.follows or partitions >= plan.partitions:
        return None
    return (
        f"topic {plan.name} has {partitions} partitions, and needs {plan.partitions}, as many as "
        "its input topic: add them with `stream-fs topics create`"
    )


_AT_LEAST: Final = ("max.message.bytes", "min.compaction.lag.ms")


def _durable(replication: int) -> dict[str, str]:
    """With three replicas or more, one may be missing, and what is acknowledged is on two."""
    return {"min.insync.replicas": "2"} if replication >= 3 else {}
