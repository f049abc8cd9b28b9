"""`stream-fs topics`: make the topics of a stream, or say what is wrong with them."""

from __future__ import annotations

from stream_fs.cli.arguments import Arguments, Commands, add_configuration, configuration, count
from stream_fs.cli.checkpoint import kafka_transport
from stream_fs.errors import InvalidConfiguration
from stream_fs.kafka import Topics
from stream_fs.kafka.topics import BROKER_DEFAULT
from stream_fs.pipeline.administration import state_errors
from stream_fs.pipeline.ports import Partition
from stream_fs.service.configuration import Configuration
from stream_fs.service.exit_codes import ExitCode
from stream_fs.service.topics import topic_problems, topic_specs


def add(commands: Commands) -> None:
    """Register the command."""
    about = "make the topics of a stream, or check them"
    actions = commands.add_parser(
        "topics", help=about, description=f"{about.capitalize()}."
    ).add_subparsers(title="commands", metavar="COMMAND", required=True)
    create = actions.add_parser(
        "create",
        help="make the topics that do not exist",
        description="Makes the topics that do not exist: state, rankings and dead letters, and "
        "with --partitions the input. Topics that exist stay as they are, but where an input topic "
        "has got more partitions, its state topic gets as many.",
    )
    add_configuration(create)
    create.add_argument(
        "--partitions",
        type=count,
        metavar="N",
        help="make input topics that do not exist, with N partitions each (default: a missing "
        "input topic is an error, and nothing is made)",
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
    if arguments.partitions is None:
        _check_input(loaded, topics)
    plans = topic_specs(
        loaded, topics, partitions=arguments.partitions or 1, replication=arguments.replication
    )
    made, grown = topics.create(plans), topics.grow(plans)
    for plan in plans:
        partitions = f"{plan.partitions} partition{'s' if plan.partitions > 1 else ''}"
        done = "made" if plan.name in made else "grown" if plan.name in grown else None
        print(f"{plan.name}: {'exists' if done is None else f'{done}, {partitions}'}")
    return ExitCode.OK


def _check_input(loaded: Configuration, topics: Topics) -> None:
    """Raise where an input topic does not exist, before any topic is made for a mistyped name."""
    existing = topics.partitions(loaded.stream.topics)
    missing = [name for name in loaded.stream.topics if name not in existing]
    if missing:
        raise InvalidConfiguration(
            [
                f"stream.topics: {name} does not exist, and nothing was made; if the name is "
                "right, `stream-fs topics create --partitions N` makes it with N partitions"
                for name in missing
            ]
        )


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
    """Conflicts of ownership, in the partitions that the state topics have."""
    states = loaded.state_topics()
    inputs = topics.partitions(list(states))
    existing = topics.partitions(list(states.values()))
    partitions = [
        Partition(topic, number)
        for topic, count in inputs.items()
        for number in range(min(count, existing.get(states[topic], 0)))
    ]
    return state_errors(kafka_transport(loaded), loaded.stream_settings(), partitions)
