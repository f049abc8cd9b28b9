"""The topics of a stream: what they have to be like, and what is wrong with those there are."""

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
    """Every topic that the stream needs; `partitions` are for input topics that do not exist yet.

    Rankings and dead letters are few: one partition keeps all of them in order.
    """
    names, largest = configuration.stream.topics, configuration.kafka.largest_message
    existing = topics.partitions(names)
    plans = []
    for name in names:
        plan = input_spec(name, existing.get(name, partitions), largest, replication)
        if name in existing:
            # Its size is for its owner to decide, as long as we can carry what it holds.
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
    """What is wrong with the topics, a sentence each; empty when the stream can run."""
    plans = topic_specs(configuration, topics)
    problems = topics.check(plans)
    existing = topics.partitions(configuration.stream.topics)
    largest = configuration.kafka.largest_message
    carried = dead_letter_limit(largest) - OWN_HEADERS_BYTES
    for name in existing:
        allowed = int(topics.config(name)["max.message.bytes"])
        if allowed > carried:
            problems.append(
                f"topic {name} allows messages of {allowed} bytes, and we could carry {carried} "
                "to the dead letters: set kafka.largest_message to "
                f"{largest + allowed - carried} or more"
            )
    partitions = sum(existing.values())
    too_large = {
        "output.top": ranking_problem(configuration, partitions),
        "kafka.largest_message": state_problem(configuration, partitions),
    }
    return problems + [f"{key}: {text}" for key, text in too_large.items() if text is not None]


def topic_gaps(configuration: Configuration, topics: Topics) -> list[str]:
    """Those of the problems with which the stream can run: some partitions have to wait."""
    return topics.gaps(topic_specs(configuration, topics))
