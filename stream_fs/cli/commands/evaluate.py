"""`stream-fs evaluate`: rankings compared with baselines."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stream_fs.cli.arguments import Arguments, Commands, above_zero, add_debug, count
from stream_fs.evaluate.experiments import experiment_names
from stream_fs.service.exit_codes import ExitCode

if TYPE_CHECKING:
    from stream_fs.evaluate.plan import Measurement

QUICK_SHARES = (0.1, 0.3, 0.5)
QUICK_REPETITIONS = 2
QUICK_ROWS = 500
MIN_ROWS = 50


def add(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "evaluate",
        help="compare the rankings with baselines (extra `evaluate`)",
        description="Compares the selector with baselines by the paper's protocol, and writes "
        "report.html, report.md and the measured rows as CSV. Measurements that are already in the "
        "output directory are not repeated: an interrupted run continues. Requires the extra: "
        "pip install 'stream-fs[evaluate]'.",
    )
    option = parser.add_argument
    option("--output", metavar="DIR", type=Path, required=True, help="directory of the results")
    option(
        "--data",
        metavar="DIR",
        type=Path,
        help="directory with data sets NAME.npz (view_0, view_1, …, labels), in addition to the "
        "built-in ones: digits, breast-cancer, topics",
    )
    option("--sets", metavar="NAME", nargs="+", default=[], help="data sets (default: all)")
    option(
        "--experiments",
        metavar="NAME",
        nargs="+",
        default=[],
        help=f"experiments (default: all): {', '.join(experiment_names())}",
    )
    option("--repetitions", metavar="N", type=count, help="repetitions (default: 5)")
    option(
        "--missing",
        metavar="SHARE",
        type=_share,
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
        help="remove views at random, or by the masks in NAME_wen_folds.npz (default: random)",
    )
    option(
        "--rows",
        metavar="N",
        type=_rows,
        help="size of the random sample that represents a larger data set (default: all rows)",
    )
    option(
        "--quick",
        action="store_true",
        help="two minutes: digits and breast-cancer unless --sets names others, 500 rows, few "
        "repetitions and settings",
    )
    option(
        "--report-only",
        action="store_true",
        help="only write the report, from the existing results",
    )
    add_debug(parser)
    parser.set_defaults(command=_evaluate)


def _evaluate(arguments: Arguments) -> ExitCode:
    # Imported here, because only this command requires the extra.
    from stream_fs.evaluate.plan import Options
    from stream_fs.evaluate.run import EvaluationRequest, evaluate

    options = Options(masks=arguments.masks, quick=arguments.quick)
    if options.quick:
        options = replace(
            options, repetitions=QUICK_REPETITIONS, shares=QUICK_SHARES, rows=QUICK_ROWS
        )
    given = {
        "repetitions": arguments.repetitions,
        "missing": arguments.missing,
        "shares": arguments.shares and tuple(arguments.shares),
        "rows": arguments.rows,
    }
    options = replace(
        options, **{name: value for name, value in given.items() if value is not None}
    )
    request = EvaluationRequest(
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
    """A bar on standard error with the remaining time; without a terminal, one line each."""
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
        task = bar.add_task("", total=planned, completed=done)
        finished = done

        def advance(measurement: Measurement) -> None:
            nonlocal finished
            finished += 1
            parts = (measurement.experiment, measurement.dataset, measurement.subject)
            description = " ".join(filter(None, parts))
            bar.update(task, completed=finished, description=description)
            if not console.is_terminal:
                console.print(f"{finished}/{planned} {description}", highlight=False)

        yield advance


def _share(text: str) -> float:
    value = above_zero(text)
    if not value < 1:
        raise argparse.ArgumentTypeError("should be a number above 0 and below 1")
    return value


def _rows(text: str) -> int:
    value = count(text)
    if value < MIN_ROWS:
        raise argparse.ArgumentTypeError(f"should be a whole number of at least {MIN_ROWS}")
    return value
