"""Measure all methods and print the table: ``python -m tests.quality --data DIR``."""

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

from stream_fs.evaluate.data import list_sets
from tests.quality.measure import JUDGES, Task, measure
from tests.quality.methods import EVERYTHING, METHODS
from tests.quality.results import Key, Result, append_results, resume_results
from tests.quality.table import render

THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main() -> None:
    options = parse()
    known = {r.key: r for r in resume_results(options.resume)} if options.resume else {}
    tasks = [
        Task(options.data, dataset, removal, options.missing, method, options.ratios, JUDGES)
        for removal in range(options.removals)
        for dataset in options.sets
        for method in options.methods
    ]
    for results in run(unfinished(tasks, known), options.jobs):
        if options.resume:
            append_results(options.resume, results)
        known.update((r.key, r) for r in results)
    print(render([known[key] for task in tasks for key in keys(task)], options.methods))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.quality", description=__doc__)
    add = parser.add_argument
    add("--data", type=Path, required=True, help="directory with .npz sets")
    add("--sets", nargs="+", help="names of sets (default: all in the directory)")
    add("--removals", type=int, default=5, help="repetitions with other views removed")
    add("--missing", type=float, default=0.5, help="share of every view's instances removed")
    add("--ratios", nargs="+", type=float, default=[0.1, 0.2, 0.3, 0.4, 0.5])
    add("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    add("--jobs", type=int, default=2, help="processes, each with one thread")
    add("--resume", type=Path, help="JSON-lines file: results in it are kept, new ones added")
    options = parser.parse_args()
    options.sets = options.sets or list_sets(options.data)
    options.ratios = tuple(options.ratios)
    return options


def keys(task: Task) -> list[Key]:
    """Everything that the task measures."""
    shares = (EVERYTHING,) if task.method == "all" else task.shares
    place = (task.dataset, task.removal, task.missing, task.method)
    return [Key(*place, judge, share) for judge in task.judges for share in shares]


def unfinished(tasks: Sequence[Task], known: Collection[Key]) -> list[Task]:
    """The tasks with only the judges that some result is still missing from."""
    left: list[Task] = []
    for task in tasks:
        missing = {key.judge for key in keys(task) if key not in known}
        if missing:
            judges = tuple(judge for judge in task.judges if judge in missing)
            left.append(replace(task, judges=judges))
    return left


def run(tasks: Sequence[Task], jobs: int) -> Iterator[list[Result]]:
    """Results of the tasks as they finish, from single-threaded processes."""
    os.environ.update(dict.fromkeys(THREAD_SETTINGS, "1"))
    start = time.monotonic()
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, mp_context=context)
    try:
        futures = {pool.submit(measure, task): task for task in tasks}
        for done, future in enumerate(as_completed(futures), 1):
            task, measured = futures[future], future.result()
            steps = " ".join(f"{step} {took:.1f}s" for step, took in measured.seconds.items())
            print(
                f"[{done}/{len(tasks)} {time.monotonic() - start:.0f}s] "
                f"{task.dataset} removal {task.removal} {task.method}: {steps}",
                file=sys.stderr,
                flush=True,
            )
            yield measured.results
    finally:
        pool.shutdown(cancel_futures=True)  # after an error, do not work off the rest first


if __name__ == "__main__":
    main()
