"""The topics of a stream: their required settings, and the problems of existing ones."""

from __future__ import annotations

from dataclasses import replace

from stream_fs.kafka import (
    Topics,
    TopicSpec,
    dead_letters_spec,
    input_spec,
    rankings_spec,
    state_spec,
)
from stream_fs.kafka.topics import BROKER_DEFAULT
from stream_fs.service.configuration import Configuration
from stream_fs.service.configuration.configuration import ranking_problem, state_problem
from stream_fs.wire.dead_letters import OWN_HEADERS_BYTES, dead_letter_limit


def topic_specs(
    configuration: Configuration,
    topics: Topics,
    *,
    partitions: int = 1,
    replication: int = BROKER_DEFAULT,
) -> list[TopicSpec]:
    """All topics of the stream; `partitions` applies to input topics that do not exist yet.

    Rankings and dead letters are few, so one partition keeps each in order.
    """
    names, largest = configuration.stream.topics, configuration.kafka.largest_message
    existing = topics.partitions(names)
    plans = []
    for name in names:
        plan = input_spec(name, existing.get(name, partitions), largest, replication)
        if name in existing:
            # Its owner decides on the size of messages, as long as the stream can process them.
            sizeless = {k: v for k, v in plan.config.items() if k != "max.message.bytes"}
            plan = replace(plan, config=sizeless)
        plans.append(plan)
    states = configuration.state_topics()
    return [
        *plans,
        *(state_spec(states[plan.name], plan.partitions, largest, replication) for plan in plans),
        rankings_spec(configuration.output.topic, 1, largest, replication),
        dead_letters_spec(configuration.dead_letters.topic, 1, largest, replication),
    ]


def topic_problems(configuration: Configuration, topics: Topics) -> list[str]:
    """The problems of the topics, one sentence each; empty if the stream can run."""
    plans = topic_specs(configuration, topics)
    problems = topics.check(plans)
    existing = topics.partitions(configuration.stream.topics)
    largest = configuration.kafka.largest_message
    carried = dead_letter_limit(largest) - OWN_HEADERS_BYTES
    for name in existing:
        allowed = int(topics.config(name)["max.message.bytes"])
        if allowed > carried:
            problems.append(
                f"topic {name} allows messages of {allowed} bytes, but a dead letter can carry "
                f"only {carried}: set kafka.largest_message to {largest + allowed - carried} "
                "or more"
            )
    partitions = sum(existing.values())
    too_large = {
        "output.top": ranking_problem(configuration, partitions),
        "kafka.largest_message": state_problem(configuration, partitions),
    }
    return problems + [f"{key}: {text}" for key, text in too_large.items() if text is not None]


def topic_gaps(configuration: Configuration, topics: Topics) -> list[str]:
    """The problems that do not prevent a start: some partitions have to wait."""
    return topics.gaps(topic_specs(configuration, topics))
