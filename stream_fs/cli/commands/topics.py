"""`stream-fs topics`: create or check the topics of a stream."""

from __future__ import annotations

from stream_fs.cli.arguments import Arguments, Commands, add_configuration, configuration, count
from stream_fs.cli.commands.checkpoint import kafka_transport
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
    about = "create or check the topics of a stream"
    actions = commands.add_parser(
        "topics", help=about, description="Creates or checks the topics of a stream."
    ).add_subparsers(title="commands", metavar="COMMAND", required=True)
    create = actions.add_parser(
        "create",
        help="create missing topics",
        description="Creates missing topics: state, rankings and dead letters, and with "
        "--partitions the input. Existing topics are left unchanged, except that a state topic "
        "is extended to as many partitions as its input topic has.",
    )
    add_configuration(create)
    create.add_argument(
        "--partitions",
        type=count,
        metavar="N",
        help="also create missing input topics, with N partitions each (default: a missing "
        "input topic is an error, and no topic is created)",
    )
    create.add_argument(
        "--replication",
        type=count,
        default=BROKER_DEFAULT,
        metavar="N",
        help="replication factor of created topics (default: the broker's)",
    )
    create.set_defaults(command=_create)
    check = actions.add_parser(
        "check",
        help="check the topics, and report problems",
        description="Checks the existence and the settings of the topics. Reports problems with "
        "their remedies and exit code 1; exit code 0 if there are none.",
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
    created, grown = topics.create(plans), topics.grow(plans)
    for plan in plans:
        partitions = f"{plan.partitions} partition{'s' if plan.partitions > 1 else ''}"
        done = "created" if plan.name in created else "extended" if plan.name in grown else None
        print(f"{plan.name}: {'exists' if done is None else f'{done}, {partitions}'}")
    return ExitCode.OK


def _check_input(loaded: Configuration, topics: Topics) -> None:
    """Raise if an input topic does not exist, before topics are created for a mistyped name."""
    existing = topics.partitions(loaded.stream.topics)
    missing = [name for name in loaded.stream.topics if name not in existing]
    if missing:
        raise InvalidConfiguration(
            [
                f"stream.topics: {name} does not exist, and no topic was created; if the name is "
                "right, `stream-fs topics create --partitions N` creates it with N partitions"
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
        print("the topics are valid")
    return ExitCode.PROBLEM if problems else ExitCode.OK


def _foreign_states(loaded: Configuration, topics: Topics) -> list[str]:
    """Conflicts over the state in existing partitions of the state topics."""
    states = loaded.state_topics()
    inputs = topics.partitions(list(states))
    existing = topics.partitions(list(states.values()))
    partitions = [
        Partition(topic, number)
        for topic, count in inputs.items()
        for number in range(min(count, existing.get(states[topic], 0)))
    ]
    return state_errors(kafka_transport(loaded), loaded.stream_settings(), partitions)
