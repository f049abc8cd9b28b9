"""`stream-fs checkpoint`: inspect, export, import or reset the saved state of partitions."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from stream_fs.checkpoint import decode_snapshot
from stream_fs.checkpoint.fields import LARGEST
from stream_fs.checkpoint.files import Export, read_export, translate_write_errors, write_export
from stream_fs.cli.arguments import Arguments, Commands, add_configuration, configuration, whole
from stream_fs.errors import ForeignState, InvalidConfiguration
from stream_fs.kafka import KafkaTransport, Topics
from stream_fs.pipeline.administration import (
    PartitionPosition,
    export_model,
    import_model,
    read_position,
    reset,
    reset_to_offset,
)
from stream_fs.pipeline.ports import Partition, Transport
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.replay.journal import Journal
from stream_fs.replay.run import replay_settings
from stream_fs.replay.transport import FileTransport
from stream_fs.selector.serialization import write_file
from stream_fs.service.configuration import Configuration
from stream_fs.service.exit_codes import ExitCode


def add_place(parser: argparse.ArgumentParser) -> None:
    """The flags that `selected` reads."""
    parser.add_argument("--topic", help="only this input topic (default: all)")
    parser.add_argument(
        "--partition", type=whole, metavar="N", help="only this partition (default: all)"
    )
    parser.add_argument(
        "--replay",
        metavar="FILE",
        type=Path,
        help="use the checkpoint of `stream-fs replay` instead of the broker",
    )


class Selected(NamedTuple):
    """The partitions of a command, the transport to their state, and the settings."""

    transport: Transport
    settings: StreamSettings
    partitions: list[Partition]

    @property
    def only(self) -> Partition:
        """The partition, for commands that require exactly one."""
        if len(self.partitions) > 1:
            raise InvalidConfiguration(
                [f"--topic, --partition: select one partition, not {len(self.partitions)}"]
            )
        return self.partitions[0]


@contextmanager
def selected(
    arguments: Arguments, loaded: Configuration, *, writing: bool = False, making: bool = False
) -> Iterator[Selected]:
    """The partitions that the arguments select, which must exist.

    `making` allows that the checkpoint of a replay does not exist yet.
    """
    settings = loaded.stream_settings()
    if arguments.replay is None:
        yield Selected(kafka_transport(loaded), settings, _on_broker(arguments, loaded))
        return
    path: Path = arguments.replay
    place = Partition(loaded.stream.topics[0], 0)
    if arguments.topic not in (None, place.topic) or arguments.partition not in (None, 0):
        raise InvalidConfiguration([f"--replay: a replay has one partition only, {place.flags}"])
    if not making and not path.exists():
        raise InvalidConfiguration([f"--replay: {path} does not exist"])
    journal = Journal(path, writing=writing)
    try:
        transport = FileTransport(place, settings.state_topics[place.topic], journal)
        yield Selected(transport, replay_settings(settings), [place])
    finally:
        journal.close()


def kafka_transport(loaded: Configuration) -> KafkaTransport:
    """The transport to the broker of a configuration."""
    states = loaded.state_topics()
    return KafkaTransport(loaded.kafka_settings(), loaded.stream.name, states.__getitem__)


def _on_broker(arguments: Arguments, loaded: Configuration) -> list[Partition]:
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
            [f"--topic, --partition: select no input partition; topics (partitions): {known}"]
        )
    return found


def agreed(arguments: Arguments, question: str) -> bool:
    """Whether the user confirms, by `--yes` or at a prompt on a terminal."""
    if arguments.yes:
        return True
    if not sys.stdin.isatty():
        raise InvalidConfiguration(["--yes: is required where standard input is not a terminal"])
    try:
        answer = input(f"{question} [y/N] ")
    except EOFError:  # Ctrl-D
        print()
        answer = ""
    if answer.strip().lower() in ("y", "yes"):
        return True
    print("nothing was changed")
    return False


def add_transfer(actions: Commands) -> None:
    """Register `export` and `import`."""
    export = actions.add_parser(
        "export",
        help="export the model and the progress of a partition to a file",
        description="Writes the newest snapshot of a partition and its progress to a file. Does "
        "not affect a running service. After a graceful shutdown, the snapshot is as new as the "
        "last ranking.",
    )
    export.add_argument("file", metavar="FILE", type=Path, help="output file; it is overwritten")
    add_configuration(export)
    add_place(export)
    export.add_argument(
        "--selector",
        action="store_true",
        help="write only the model, for MultiViewSelector.load in Python; such a file cannot be "
        "imported",
    )
    export.set_defaults(command=_export)
    taking = actions.add_parser(
        "import",
        help="import an exported model into a partition",
        description="Replaces the model of a partition by an exported one. The sequence of its "
        "rankings continues, at the exported input offset or at another (--to-offset). A running "
        "service applies it at its next commit. A model that does not fit this configuration is "
        "refused.",
    )
    taking.add_argument(
        "file", metavar="FILE", type=Path, help="file that `checkpoint export` wrote"
    )
    add_configuration(taking)
    add_place(taking)
    taking.add_argument(
        "--to-offset",
        type=whole,
        metavar="N",
        help="continue at this input offset (default: the exported one; chunks published after "
        "the snapshot are then replayed from the input, which must be the same)",
    )
    taking.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    taking.set_defaults(command=_import)


def _export(arguments: Arguments) -> ExitCode:
    loaded = configuration(arguments)
    with selected(arguments, loaded) as found:
        partition = found.only
        export = export_model(found.transport, found.settings, partition)
    snapshot, progress = export.snapshot, export.progress
    state = decode_snapshot(snapshot.manifest, snapshot.parts, loaded.params()).state
    if arguments.selector:
        with translate_write_errors(arguments.file):
            write_file(arguments.file, state, ())
    else:
        write_export(arguments.file, export)
    behind = progress.chunk - state.chunk
    print(
        f"{partition}: chunk {progress.chunk}, next offset {progress.next_offset}, "
        f"to {arguments.file}{_behind(behind)}"
    )
    return ExitCode.OK


def _import(arguments: Arguments) -> ExitCode:
    loaded = configuration(arguments)
    export = _read(arguments.file)
    with selected(arguments, loaded, writing=True, making=True) as found:
        partition = found.only
        before = read_position(found.transport, found.settings, partition).progress
        if before is not None and before.chunk:
            question = f"replace the model of {partition}, which is at chunk {before.chunk}?"
            if not agreed(arguments, question):
                return ExitCode.PROBLEM
        taken = import_model(
            found.transport, found.settings, partition, export, arguments.to_offset
        )
    lacking = "" if arguments.to_offset is None else _behind(taken.behind)
    print(f"{partition}: continues at offset {taken.offset}, after chunk {taken.chunk}{lacking}")
    return ExitCode.OK


def _read(path: Path) -> Export:
    try:
        return read_export(path)
    except FileNotFoundError:
        raise InvalidConfiguration([f"FILE: {path} does not exist"]) from None


def _behind(chunks: int) -> str:
    if not chunks:
        return ""
    return f"; the last {chunks} chunk{'s are' if chunks > 1 else ' is'} not in the model"


def add(commands: Commands) -> None:
    """Register the command."""
    about = "inspect, export, import or reset the saved state of partitions"
    actions = commands.add_parser(
        "checkpoint",
        help=about,
        description="Inspects, exports, imports or resets the saved state of partitions.",
    ).add_subparsers(title="commands", metavar="COMMAND", required=True)
    inspect = actions.add_parser(
        "inspect",
        help="show the progress of every partition",
        description="Shows, for every input partition, the last published chunk, the offset at "
        "which it continues, and the snapshot from which it would be restored.",
    )
    add_configuration(inspect)
    add_place(inspect)
    inspect.add_argument("--json", action="store_true", help="print a JSON object per partition")
    inspect.set_defaults(command=_inspect)
    reset = actions.add_parser(
        "reset",
        help="discard the state of partitions, or continue at another offset",
        description="Discards the state of partitions, which then begin with an empty model, or "
        "lets a partition continue at another offset. A running service applies it at its next "
        "commit.",
    )
    add_configuration(reset)
    add_place(reset)
    reset.add_argument(
        "--to-offset",
        type=whole,
        metavar="N",
        help="continue at this input offset (default: that of a new partition, stream.start)",
    )
    reset.add_argument(
        "--keep-model",
        action="store_true",
        help="with --to-offset: keep the model and the sequence of rankings; the records in "
        "between are skipped",
    )
    reset.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    reset.set_defaults(command=_reset)
    add_transfer(actions)


def _inspect(arguments: Arguments) -> ExitCode:
    loaded = configuration(arguments)
    expected = loaded.params().fingerprint
    with selected(arguments, loaded) as found:
        for partition in found.partitions:
            position = read_position(found.transport, found.settings, partition)
            text = json.dumps(_plain(position, expected)) if arguments.json else None
            print(text or _line(position, expected))
    return ExitCode.OK


def _reset(arguments: Arguments) -> ExitCode:
    loaded = configuration(arguments)
    offset: int | None = arguments.to_offset
    if arguments.keep_model and offset is None:
        raise InvalidConfiguration(["--keep-model: requires --to-offset"])
    with selected(arguments, loaded, writing=True) as (transport, settings, places):
        if offset is not None and len(places) > 1:
            raise InvalidConfiguration(
                [f"--to-offset: select one partition (--topic, --partition), not {len(places)}"]
            )
        if not agreed(arguments, _question(places, keep=arguments.keep_model)):
            return ExitCode.PROBLEM
        if offset is None:
            return _reset_all(transport, settings, places)
        (partition,) = places
        reset_to_offset(transport, settings, partition, offset, keep_model=arguments.keep_model)
        print(f"{partition}: continues at offset {offset}")
    return ExitCode.OK


def _reset_all(
    transport: Transport, settings: StreamSettings, places: Sequence[Partition]
) -> ExitCode:
    """Reset every partition; `PROBLEM` if one has only the state of other streams.

    If resets are refused, the first refusal is raised after all others are done.
    """
    code, refusals = ExitCode.OK, list[ForeignState]()
    for partition in places:
        try:
            others = reset(transport, settings, partition)
        except ForeignState as refusal:
            refusals.append(refusal)
            print(f"{partition}: nothing was changed")
            continue
        if others is None:
            print(f"{partition}: starts over")
        else:
            code = ExitCode.PROBLEM
            print(
                f"{partition}: nothing was changed: there is no state of {settings.owner}, but "
                f"one of {others}"
            )
    if refusals:
        raise refusals[0]
    return code


def _question(found: list[Partition], *, keep: bool) -> str:
    what = "skip records of" if keep else "discard the model of"
    return f"{what} {', '.join(map(str, found))}?"


def _line(found: PartitionPosition, expected: str) -> str:
    progress = found.progress
    if progress is None or not progress.chunk:
        begins = "" if progress is None else f", starts at offset {progress.next_offset}"
        others = f"; the state topic has a state of {found.others}" if found.others else ""
        return f"{found.partition}: no chunk yet{begins}{_inputs('; input', found)}{others}"
    newest = progress.snapshots[0]
    changed = "" if progress.fingerprint == expected else "; made with another configuration"
    return (
        f"{found.partition}: chunk {progress.chunk}, next offset {progress.next_offset}"
        f"{_inputs(' of', found)}, snapshot of chunk {newest.chunk} at state offset "
        f"{newest.offset}{changed}"
    )


def _inputs(before: str, found: PartitionPosition) -> str:
    """The first and end offset of the input; empty if unknown, as for files."""
    return "" if found.end == LARGEST else f"{before} [{found.first}, {found.end})"


def _plain(found: PartitionPosition, expected: str) -> dict[str, object]:
    progress = found.progress
    plain: dict[str, object] = {
        "topic": found.partition.topic,
        "partition": found.partition.number,
        "input": {"first": found.first, "end": None if found.end == LARGEST else found.end},
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
