"""`stream-fs evaluate`: how good the rankings are."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from stream_fs.cli.arguments import Arguments, Commands, above_zero, add_debug, count
from stream_fs.service.exit_codes import ExitCode

if TYPE_CHECKING:
    from stream_fs.evaluate.plan import Measurement

DEFAULT_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5)
QUICK_SHARES = (0.1, 0.3, 0.5)
QUICK_REPETITIONS = 2
QUICK_ROWS = 500
LEAST_ROWS = 50


def add(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "evaluate",
        help="measure how good the rankings are (extra `evaluate`)",
        description="Measures the selector against baselines by the paper's protocol, and writes "
        "report.html, report.md and the rows as CSV. What the output directory already has is not "
        "measured again: a run that was stopped goes on. Needs the extra: "
        "pip install 'stream-fs[evaluate]'.",
    )
    option = parser.add_argument
    option("--output", metavar="DIR", type=Path, required=True, help="where results are kept")
    option(
        "--data",
        metavar="DIR",
        type=Path,
        help="directory with NAME.npz (view_0, view_1, …, labels); without it only the built-in "
        "sets digits, breast-cancer and topics take part",
    )
    option("--sets", metavar="NAME", nargs="+", default=[], help="data sets (default: all)")
    option(
        "--experiments",
        metavar="NAME",
        nargs="+",
        default=[],
        help="experiments (default: all): ranking, grid, traits, stability, drift, speed, "
        "convergence, ablation, missing, sensitivity, judging, merging, merging-long",
    )
    option("--repetitions", metavar="N", type=count, help="repetitions (default: 5)")
    option(
        "--missing",
        metavar="SHARE",
        type=_share,
        default=0.5,
        help="share of every view's instances that is removed (default: 0.5)",
    )
    option(
        "--shares",
        metavar="SHARE",
        nargs="+",
        type=_share,
        help="shares of the features that are selected (default: 0.1 0.2 0.3 0.4 0.5)",
    )
    option(
        "--masks",
        choices=["random", "published"],
        default="random",
        help="remove views at random, or as NAME_wen_folds.npz says (default: random)",
    )
    option(
        "--rows",
        metavar="N",
        type=_rows,
        help="of larger data sets, take so many rows at random (default: all)",
    )
    option(
        "--quick",
        action="store_true",
        help="two minutes: digits and breast-cancer unless --sets names others, 500 rows, few "
        "repetitions and settings",
    )
    option("--report-only", action="store_true", help="write the report of what is there, and end")
    add_debug(parser)
    parser.set_defaults(command=_evaluate)


def _evaluate(arguments: Arguments) -> ExitCode:
    # Here, so that the other commands need neither scikit-learn nor matplotlib.
    from stream_fs.evaluate.plan import Options
    from stream_fs.evaluate.run import Request, evaluate

    quick = arguments.quick
    options = Options(
        repetitions=arguments.repetitions or (QUICK_REPETITIONS if quick else 5),
        missing=arguments.missing,
        shares=tuple(arguments.shares or (QUICK_SHARES if quick else DEFAULT_SHARES)),
        masks=arguments.masks,
        rows=arguments.rows or (QUICK_ROWS if quick else None),
        quick=quick,
    )
    request = Request(
        output=arguments.output,
        data=arguments.data,
        sets=tuple(arguments.sets),
        experiments=tuple(arguments.experiments),
        options=options,
        report_only=arguments.report_only,
    )
    page = evaluate(request, progress)
    print(page)
    return ExitCode.OK


@contextmanager
def progress(done: int, planned: int) -> Iterator[Callable[[Measurement], None]]:
    """A bar on standard error with the time that is left; lines where there is no terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        shown = bar.add_task("", total=planned, completed=done)
        finished = done

        def advance(task: Measurement) -> None:
            nonlocal finished
            finished += 1
            what = " ".join([task.experiment, task.dataset, str(task.settings.get("method", ""))])
            bar.update(shown, completed=finished, description=what)
            if not console.is_terminal:
                console.print(f"{finished}/{planned} {what}", highlight=False)

        yield advance


def _share(text: str) -> float:
    value = above_zero(text)
    if not value < 1:
        raise argparse.ArgumentTypeError("should be a number above 0 and below 1")
    return value


def _rows(text: str) -> int:
    value = count(text)
    if value < LEAST_ROWS:
        raise argparse.ArgumentTypeError(f"should be a whole number from {LEAST_ROWS}")
    return value
