"""`stream-fs replay`: run the pipeline on files, without a broker."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from rich.progress import Progress

from stream_fs.cli.arguments import (
    Arguments,
    Commands,
    Timestamps,
    add_configuration,
    add_format,
    add_timestamps,
    configuration,
    progress,
    timestamps,
)
from stream_fs.cli.interrupts import stop_requests
from stream_fs.errors import InvalidConfiguration
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.replay import Source, file_format, file_formats
from stream_fs.replay.outputs import (
    FileOutput,
    NoOutput,
    Output,
    StreamOutput,
    dead_letter_line,
    ranking_lines,
)
from stream_fs.replay.run import Plan, Summary, replay
from stream_fs.service.exit_codes import ExitCode


def add(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "replay",
        help="run the pipeline on files, without a broker",
        description="Runs the pipeline of the service on files, as if they were partition 0 of the "
        "first input topic, and writes the same rankings. With --checkpoint it can be killed at "
        "any point: the same command continues, and the output files are those of an undisturbed "
        "run. Without --checkpoint, existing output files are overwritten. As in the service, "
        "records after the last full chunk are in no ranking.",
    )
    parser.add_argument(
        "files", metavar="FILE", nargs="+", help="input files in order, or - for standard input"
    )
    add_configuration(parser)
    add_format(parser)
    parser.add_argument(
        "--rankings",
        metavar="FILE",
        default="-",
        help="output file of the rankings, one per line if output.format is json (default: -, "
        "standard output)",
    )
    parser.add_argument(
        "--dead-letters",
        metavar="FILE",
        type=Path,
        help="output file of the dead letters: JSON lines with the value in Base64 and the reason "
        "in the headers (default: they are only counted)",
    )
    parser.add_argument(
        "--checkpoint",
        metavar="FILE",
        type=Path,
        help="file of the state, from which the same command continues; requires --rankings FILE",
    )
    add_timestamps(parser, "0")
    parser.set_defaults(command=_replay)


def _replay(arguments: Arguments) -> ExitCode:
    loaded = configuration(arguments)
    settings = loaded.stream_settings()
    _check_outputs(arguments)
    stamps = timestamps(arguments) or Timestamps(0, 0)
    sources = _sources(arguments, settings)
    plan = Plan(
        settings=settings,
        topic=loaded.stream.topics[0],
        sources=sources,
        rankings=_rankings(arguments.rankings, settings),
        dead_letters=_letters(arguments.dead_letters),
        checkpoint=arguments.checkpoint,
        timestamp=stamps.of,
        more_facts={"--first-timestamp": stamps.first, "--timestamp-step": stamps.step},
    )
    with stop_requests(signal.SIGINT, signal.SIGTERM) as stopping, progress() as bar:
        summary = replay(plan, stop_requested=stopping, report=_Bar(bar, sources))
        stopped = stopping()
    sys.stderr.write(_report(summary))
    return ExitCode.INTERRUPTED if stopped else ExitCode.OK


def _sources(arguments: Arguments, settings: StreamSettings) -> list[Source]:
    kinds = [(name, file_format(name, arguments.format)) for name in arguments.files]
    # Arrays are encoded in the format of the other files, if there are any.
    formats = [format for _, kind in kinds if (format := file_formats()[kind]) is not None]
    wanted = formats[0] if formats else settings.record_format
    return [Source(name, kind, settings.views, wanted) for name, kind in kinds]


def _check_outputs(arguments: Arguments) -> None:
    problems = []
    if arguments.checkpoint is not None and arguments.rankings == "-":
        problems.append(
            "--checkpoint: requires --rankings FILE, since output to a pipe cannot be rolled back"
        )
    named = {
        "--rankings": None if arguments.rankings == "-" else Path(arguments.rankings),
        "--dead-letters": arguments.dead_letters,
        "--checkpoint": arguments.checkpoint,
        **{f"FILE {name}": Path(name) for name in arguments.files if name != "-"},
    }
    seen: dict[Path, str] = {}
    for flag, path in named.items():
        if path is not None and (other := seen.setdefault(path.resolve(), flag)) != flag:
            problems.append(f"{flag}: is the same file as {other}")
    if problems:
        raise InvalidConfiguration(problems)


def _rankings(name: str, settings: StreamSettings) -> Output:
    written = ranking_lines(settings.output_format)
    if name == "-":
        return StreamOutput(sys.stdout.buffer, written)
    return FileOutput(Path(name), written)


def _letters(path: Path | None) -> Output:
    return NoOutput() if path is None else FileOutput(path, dead_letter_line)


class _Bar:
    """Shows the progress, in bytes of the files if their sizes are known."""

    def __init__(self, bar: Progress, sources: list[Source]) -> None:
        sizes = [source.size for source in sources]
        total = None if None in sizes else sum(size or 0 for size in sizes)
        self._bar = bar
        self._sources = sources
        self._task = bar.add_task("replaying", total=total, status="")

    def __call__(self, summary: Summary) -> None:
        done = sum(source.done for source in self._sources)
        status = f"{summary.position} records, {summary.chunk} chunks"
        self._bar.update(self._task, completed=done, status=status)


def _report(summary: Summary) -> str:
    """The summary as lines of text."""
    records = summary.position - summary.resumed
    reasons = ", ".join(
        f"{reason} {count}" for reason, count in sorted(summary.dead_letters.items())
    )
    rate = records / summary.seconds if summary.seconds else 0.0
    # Bad records become dead letters with their chunk.
    letters = summary.incomplete_dead_letters
    bad = f" and {letters} bad one{'s' if letters > 1 else ''}" if letters else ""
    lines = [
        f"records       {records}" + (f", from {summary.resumed} on" if summary.resumed else ""),
        f"dead letters  {summary.dead_letters.total()}" + (f" ({reasons})" if reasons else ""),
        f"chunks        {summary.chunk}",
        f"rankings      {summary.rankings}" + (" of them in this run" if summary.resumed else ""),
        f"incomplete    {summary.incomplete_records} records{bad} in a chunk that is not full",
        *(f"warning       {warning}" for warning in summary.warnings),
        f"time          {summary.seconds:.1f} s, {rate:.0f} records/s",
    ]
    return "\n".join(lines) + "\n"
