"""`stream-fs topics`: make the topics of a stream, or say what is wrong with them."""

from __future__ import annotations

from stream_fs.cli.arguments import Arguments, Commands, add_configuration, configuration, count
from stream_fs.cli.partitions import kafka_transport
from stream_fs.kafka import Topics
from stream_fs.kafka.plans import BROKER_DEFAULT
from stream_fs.pipeline.administration import foreign_states
from stream_fs.pipeline.ports import Partition
from stream_fs.service.configuration import Configuration
from stream_fs.service.exit_codes import ExitCode
from stream_fs.service.topic_plans import topic_plans, topic_problems


def add(commands: Commands) -> None:
    """Register the command."""
    about = "make the topics of a stream, or check them"
    actions = commands.add_parser(
        "topics", help=about, description=f"{about.capitalize()}."
    ).add_subparsers(title="commands", metavar="COMMAND", required=True)
    create = actions.add_parser(
        "create",
        help="make the topics that do not exist",
        description="Makes the topics that do not exist: input, state, rankings and dead letters. "
        "Those that exist stay as they are, but where an input topic has got more partitions, its "
        "state topic gets as many.",
    )
    add_configuration(create)
    create.add_argument(
        "--partitions",
        type=count,
        default=1,
        metavar="N",
        help="partitions of input topics that do not exist (default: 1)",
    )
    create.add_argument(
        "--replication",
        type=count,
        default=BROKER_DEFAULT,
        metavar="N",
        help="replicas of every topic that is made (default: the broker's)",
    )
    create.set_defaults(command=_create)
    check = actions.add_parser(
        "check",
        help="say what is wrong with the topics",
        description="Says what is wrong with the topics, and how to mend it; exit code 1 if "
        "anything is.",
    )
    add_configuration(check)
    check.set_defaults(command=_check)


def _create(arguments: Arguments) -> ExitCode:
    loaded = configuration(arguments)
    topics = Topics(loaded.kafka_settings())
    plans = topic_plans(
        loaded, topics, partitions=arguments.partitions, replication=arguments.replication
    )
    made, grown = topics.create(plans), topics.grow(plans)
    for plan in plans:
        partitions = f"{plan.partitions} partition{'s' if plan.partitions > 1 else ''}"
        done = "made" if plan.name in made else "grown" if plan.name in grown else None
        print(f"{plan.name}: {'exists' if done is None else f'{done}, {partitions}'}")
    return ExitCode.OK


def _check(arguments: Arguments) -> ExitCode:
    loaded = configuration(arguments)
    topics = Topics(loaded.kafka_settings())
    problems = topic_problems(loaded, topics) + _foreign_states(loaded, topics)
    for problem in problems:
        print(problem)
    if not problems:
        print("the topics are as they should be")
    return ExitCode.PROBLEM if problems else ExitCode.OK


def _foreign_states(loaded: Configuration, topics: Topics) -> list[str]:
    """What is wrong with the owner of the states, in those partitions that have a place for one."""
    states = loaded.state_topics()
    inputs = topics.partitions(list(states))
    existing = topics.partitions(list(states.values()))
    partitions = [
        Partition(topic, number)
        for topic, count in inputs.items()
        for number in range(min(count, existing.get(states[topic], 0)))
    ]
    return foreign_states(kafka_transport(loaded), loaded.stream_settings(), partitions)
