"""`stream-fs checkpoint`: look at the saved state of partitions, or let them begin elsewhere."""

from __future__ import annotations

import argparse
import json
import sys

from stream_fs.cli.arguments import Arguments, Commands, add_configuration, configuration
from stream_fs.errors import InvalidConfiguration
from stream_fs.kafka import KafkaTransport, Topics
from stream_fs.pipeline.administration import Standing, begin_at, forget, standing
from stream_fs.pipeline.ports import Partition
from stream_fs.service.configuration import Configuration
from stream_fs.service.exit_codes import ExitCode


def add(commands: Commands) -> None:
    """Register the command."""
    about = "look at the saved state of partitions, or let them begin elsewhere"
    actions = commands.add_parser(
        "checkpoint", help=about, description=f"{about.capitalize()}."
    ).add_subparsers(title="commands", metavar="COMMAND", required=True)
    inspect = actions.add_parser(
        "inspect",
        help="show where every partition stands",
        description="Shows, for every input partition, the last published chunk, the offset it "
        "continues at, and the snapshot that it would be restored from.",
    )
    add_configuration(inspect)
    _add_place(inspect)
    inspect.add_argument("--json", action="store_true", help="one JSON object for each partition")
    inspect.set_defaults(command=_inspect)
    reset = actions.add_parser(
        "reset",
        help="let partitions begin anew, or continue elsewhere",
        description="Forgets the model of partitions, which then begin anew; or lets them continue "
        "at another offset. A running service takes notice at its next commit.",
    )
    add_configuration(reset)
    _add_place(reset)
    reset.add_argument(
        "--to-offset",
        type=int,
        metavar="N",
        help="continue at this offset of the input (default: where a new partition begins)",
    )
    reset.add_argument(
        "--keep-model",
        action="store_true",
        help="with --to-offset: keep the model and the sequence of the rankings; the records in "
        "between are not in it",
    )
    reset.add_argument("--yes", action="store_true", help="do not ask")
    reset.set_defaults(command=_reset)


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", help="only this input topic (default: all of the stream)")
    parser.add_argument("--partition", type=int, metavar="N", help="only this partition")


def _inspect(arguments: Arguments) -> ExitCode:
    loaded = configuration(arguments)
    transport = _transport(loaded)
    expected = loaded.params().fingerprint
    for partition in _partitions(arguments, loaded):
        found = standing(transport, partition)
        print(json.dumps(_plain(found, expected)) if arguments.json else _line(found, expected))
    return ExitCode.OK


def _reset(arguments: Arguments) -> ExitCode:
    loaded = configuration(arguments)
    if arguments.keep_model and arguments.to_offset is None:
        raise InvalidConfiguration(["--keep-model: goes with --to-offset"])
    partitions = _partitions(arguments, loaded)
    if arguments.to_offset is not None and len(partitions) > 1:
        raise InvalidConfiguration(
            [f"--to-offset: name one partition with --topic and --partition, not {len(partitions)}"]
        )
    if not arguments.yes and not _agreed(partitions, keep=arguments.keep_model):
        print("nothing was changed")
        return ExitCode.PROBLEM
    transport, settings = _transport(loaded), loaded.stream_settings()
    for partition in partitions:
        if arguments.to_offset is None:
            forget(transport, settings, partition)
            print(f"{partition}: begins anew")
        else:
            offset = arguments.to_offset
            begin_at(transport, settings, partition, offset, keep_model=arguments.keep_model)
            print(f"{partition}: continues at offset {offset}")
    return ExitCode.OK


def _agreed(partitions: list[Partition], *, keep: bool) -> bool:
    """Ask, where there is somebody to ask."""
    if not sys.stdin.isatty():
        raise InvalidConfiguration(["--yes: is missing, and there is nobody to ask"])
    what = "skip records of" if keep else "forget the model of"
    names = ", ".join(map(str, partitions))
    return input(f"{what} {names}? [y/N] ").strip().lower() in ("y", "yes")


def _partitions(arguments: Arguments, loaded: Configuration) -> list[Partition]:
    """The partitions that the arguments name; they must exist."""
    existing = Topics(loaded.kafka_settings()).partitions(loaded.stream.topics)
    found = [
        Partition(topic, number)
        for topic, count in existing.items()
        for number in range(count)
        if arguments.topic in (None, topic) and arguments.partition in (None, number)
    ]
    if not found:
        known = ", ".join(f"{topic} ({count})" for topic, count in existing.items()) or "none"
        raise InvalidConfiguration(
            [f"--topic, --partition: name an input partition; topics and partitions are {known}"]
        )
    return found


def _transport(loaded: Configuration) -> KafkaTransport:
    return KafkaTransport(loaded.kafka_settings(), loaded.state_topics().__getitem__)


def _line(found: Standing, expected: str) -> str:
    progress = found.progress
    if progress is None:
        return f"{found.partition}: no chunk yet; input [{found.first}, {found.end})"
    newest = progress.snapshots[0]
    changed = "" if progress.fingerprint == expected else "; made with another configuration"
    return (
        f"{found.partition}: chunk {progress.chunk}, next offset {progress.next_offset} of "
        f"[{found.first}, {found.end}), snapshot of chunk {newest.chunk} at state offset "
        f"{newest.offset}{changed}"
    )


def _plain(found: Standing, expected: str) -> dict[str, object]:
    progress = found.progress
    plain: dict[str, object] = {
        "topic": found.partition.topic,
        "partition": found.partition.number,
        "input": {"first": found.first, "end": found.end},
        "chunk": None,
    }
    if progress is not None:
        plain |= {
            "chunk": progress.chunk,
            "next_offset": progress.next_offset,
            "ranking_digest": progress.digest,
            "same_configuration": progress.fingerprint == expected,
            "snapshots": [
                {"chunk": place.chunk, "number": place.number, "offset": place.offset}
                for place in progress.snapshots
            ],
        }
    return plain
