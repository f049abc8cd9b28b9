"""`python -m tests.benchmarks.service [--quick] [--sections NAME …]`: the whole service.

Programs take turns on one broker (that of STREAM_FS_BOOTSTRAP, or one that is started for it); what
counts is the ratio within a turn. The report goes to standard output, and with every figure
to the folder `--output`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from threadpoolctl import threadpool_limits

from stream_fs.broker import running_broker
from stream_fs.service.process.memory import keep_freed_memory
from tests.benchmarks.service.input_topics import Workspace
from tests.benchmarks.service.plan import FULL, QUICK, Plan
from tests.benchmarks.service.report import Report
from tests.benchmarks.service.sections import SECTIONS, Section
from tests.benchmarks.service.working import warm_up


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    plan = QUICK if options.quick else FULL
    if options.turns:
        plan = replace(plan, turns=options.turns)
    chosen = [section for section in SECTIONS if section.name in options.sections]
    options.output.mkdir(parents=True, exist_ok=True)
    report = measure(chosen, plan, options.output)
    print(report.markdown(), end="")
    return 1 if options.strict and not all(report.goals().values()) else 0


def measure(sections: Sequence[Section], plan: Plan, output: Path) -> Report:
    """Measure on one broker; standard error shows what is being measured.

    The report is written after every section.
    """
    report = Report(plan)
    keep_freed_memory()  # as the service does; also for the peers
    with (
        threadpool_limits(1),
        running_broker() as broker,
        tempfile.TemporaryDirectory() as folder,
    ):
        workspace = Workspace(broker.bootstrap, Path(folder))
        warm_up(workspace, plan.warm_chunks)
        for section in sections:
            print(section.heading, end=" … ", file=sys.stderr, flush=True)
            begin = time.perf_counter()
            report.add(section, section.run(workspace, plan))
            (output / "service.md").write_text(report.markdown(), encoding="utf-8")
            (output / "service.json").write_text(report.json(), encoding="utf-8")
            print(f"{time.perf_counter() - begin:.0f} s", file=sys.stderr, flush=True)
    return report


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    names = [section.name for section in SECTIONS]
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.service")
    parser.add_argument("--quick", action="store_true", help="fewer turns and sizes")
    parser.add_argument("--turns", type=int, help="of each comparison, in place of the usual ones")
    parser.add_argument(
        "--sections", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names)
    )
    # Goals are about ratios, which noise moves on a machine that others use, too.
    parser.add_argument("--strict", action="store_true", help="exit code 1 where a goal is missed")
    parser.add_argument("--output", type=Path, default=Path("build/bench"), help="folder")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
