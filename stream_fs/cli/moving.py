"""`stream-fs checkpoint export|import`: a partition's model as a file, and back, or elsewhere."""

from __future__ import annotations

from pathlib import Path

from stream_fs.checkpoint import decode
from stream_fs.checkpoint.files import Export, read_export, write_export, writing
from stream_fs.cli.arguments import Arguments, Commands, add_configuration, configuration
from stream_fs.cli.files import whole
from stream_fs.cli.partitions import add_place, agreed, selected
from stream_fs.errors import InvalidConfiguration
from stream_fs.pipeline.administration import exported, standing, take_in
from stream_fs.selector.files import write_file
from stream_fs.service.exit_codes import ExitCode


def add(actions: Commands) -> None:
    """Register both."""
    export = actions.add_parser(
        "export",
        help="write the model of a partition, and how far it is, into a file",
        description="Writes the newest snapshot of a partition, and how far its rankings are, into "
        "a file. A running service is not disturbed; after an orderly end the snapshot is as new "
        "as the last ranking.",
    )
    export.add_argument("file", metavar="FILE", type=Path, help="where to; it is overwritten")
    add_configuration(export)
    add_place(export)
    export.add_argument(
        "--selector",
        action="store_true",
        help="write the model alone, for MultiViewSelector.load in Python; such a file cannot be "
        "imported",
    )
    export.set_defaults(command=_export)
    taking = actions.add_parser(
        "import",
        help="let a partition go on from such a file",
        description="Lets a partition go on from an exported model: the sequence of its rankings "
        "goes on, at the exported offset of the input or at another (--to-offset). What the "
        "partition had before is given up; a running service takes notice at its next commit. A "
        "model that would mean something else under this configuration is refused.",
    )
    taking.add_argument("file", metavar="FILE", type=Path, help="a file that was exported")
    add_configuration(taking)
    add_place(taking)
    taking.add_argument(
        "--to-offset",
        type=whole,
        metavar="N",
        help="go on at this offset of the input (default: the exported one; chunks that were "
        "published after the snapshot are then folded in from the input, which must be the same)",
    )
    taking.add_argument("--yes", action="store_true", help="do not ask")
    taking.set_defaults(command=_import)


def _export(arguments: Arguments) -> ExitCode:
    loaded = configuration(arguments)
    with selected(arguments, loaded) as found:
        partition = found.only
        export = exported(found.transport, found.settings, partition)
    snapshot, progress = export.snapshot, export.progress
    state = decode(snapshot.manifest, snapshot.parts, loaded.params()).state
    if arguments.selector:
        with writing(arguments.file):
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
        before = standing(found.transport, found.settings, partition).progress
        if before is not None and before.chunk:
            question = f"give up the model of {partition}, which is at chunk {before.chunk}?"
            if not agreed(arguments, question):
                return ExitCode.PROBLEM
        taken = take_in(found.transport, found.settings, partition, export, arguments.to_offset)
    lacking = "" if arguments.to_offset is None else _behind(taken.behind)
    print(f"{partition}: goes on at offset {taken.offset}, behind chunk {taken.chunk}{lacking}")
    return ExitCode.OK


def _read(path: Path) -> Export:
    try:
        return read_export(path)
    except FileNotFoundError:
        raise InvalidConfiguration([f"FILE: there is no {path}"]) from None


def _behind(chunks: int) -> str:
    if not chunks:
        return ""
    return f"; the last {chunks} chunk{'s are' if chunks > 1 else ' is'} not in the model"
