"""`stream-fs checkpoint`: look at the saved state of partitions, move it, or begin elsewhere."""

from __future__ import annotations

import json
from collections.abc import Sequence

from stream_fs.checkpoint.plain import LARGEST
from stream_fs.cli import moving
from stream_fs.cli.arguments import Arguments, Commands, add_configuration, configuration
from stream_fs.cli.files import whole
from stream_fs.cli.partitions import add_place, agreed, selected
from stream_fs.errors import ForeignState, InvalidConfiguration
from stream_fs.pipeline.administration import Standing, begin_at, forget, standing
from stream_fs.pipeline.ports import Partition, Transport
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.service.exit_codes import ExitCode


def add(commands: Commands) -> None:
    """Register the command."""
    about = "look at the saved state of partitions, move it, or let them begin elsewhere"
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
    add_place(inspect)
    inspect.add_argument("--json", action="store_true", help="one JSON object for each partition")
    inspect.set_defaults(command=_inspect)
    reset = actions.add_parser(
        "reset",
        help="let partitions begin anew, or continue elsewhere",
        description="Forgets the model of partitions, which then begin anew; or lets them continue "
        "at another offset. A running service takes notice at its next commit.",
    )
    add_configuration(reset)
    add_place(reset)
    reset.add_argument(
        "--to-offset",
        type=whole,
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
    moving.add(actions)


def _inspect(arguments: Arguments) -> ExitCode:
    loaded = configuration(arguments)
    expected = loaded.params().fingerprint
    with selected(arguments, loaded) as found:
        for partition in found.partitions:
            stands = standing(found.transport, found.settings, partition)
            text = json.dumps(_plain(stands, expected)) if arguments.json else None
            print(text or _line(stands, expected))
    return ExitCode.OK


def _reset(arguments: Arguments) -> ExitCode:
    loaded = configuration(arguments)
    offset: int | None = arguments.to_offset
    if arguments.keep_model and offset is None:
        raise InvalidConfiguration(["--keep-model: goes with --to-offset"])
    with selected(arguments, loaded, writing=True) as (transport, settings, places):
        if offset is not None and len(places) > 1:
            raise InvalidConfiguration(
                [f"--to-offset: name one partition with --topic and --partition, not {len(places)}"]
            )
        if not agreed(arguments, _question(places, keep=arguments.keep_model)):
            return ExitCode.PROBLEM
        if offset is None:
            return _forget(transport, settings, places)
        (partition,) = places
        begin_at(transport, settings, partition, offset, keep_model=arguments.keep_model)
        print(f"{partition}: continues at offset {offset}")
    return ExitCode.OK


def _forget(
    transport: Transport, settings: StreamSettings, places: Sequence[Partition]
) -> ExitCode:
    """Reset every partition; a problem where only other streams have a state.

    Where one is refused, the first refusal is raised after the others were reset.
    """
    code, refusals = ExitCode.OK, list[ForeignState]()
    for partition in places:
        try:
            others = forget(transport, settings, partition)
        except ForeignState as refusal:
            refusals.append(refusal)
            print(f"{partition}: nothing was changed")
            continue
        if others is None:
            print(f"{partition}: begins anew")
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
    what = "skip records of" if keep else "forget the model of"
    return f"{what} {', '.join(map(str, found))}?"


def _line(found: Standing, expected: str) -> str:
    progress = found.progress
    if progress is None or not progress.chunk:
        begins = "" if progress is None else f", begins at offset {progress.next_offset}"
        others = f"; the state topic has a state of {found.others}" if found.others else ""
        return f"{found.partition}: no chunk yet{begins}{_inputs('; input', found)}{others}"
    newest = progress.snapshots[0]
    changed = "" if progress.fingerprint == expected else "; made with another configuration"
    return (
        f"{found.partition}: chunk {progress.chunk}, next offset {progress.next_offset}"
        f"{_inputs(' of', found)}, snapshot of chunk {newest.chunk} at state offset "
        f"{newest.offset}{changed}"
    )


def _inputs(before: str, found: Standing) -> str:
    """The input's ends; nothing where they are not known, as for files."""
    return "" if found.end == LARGEST else f"{before} [{found.first}, {found.end})"


def _plain(found: Standing, expected: str) -> dict[str, object]:
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
