"""The public selector: its results, its files, and the continuation of those."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.compatibility.arrays import selector_jobs
from tests.compatibility.formats import selector_members
from tests.compatibility.releases import Runner
from tests.compatibility.sections import Finding, Options, finding


def compare(old: Runner, new: Runner, options: Options) -> Iterator[Finding]:
    """Every preset, precision and kind of matrix."""
    jobs = {n: job for n, job in selector_jobs(options.seed).items() if options.cases in n}
    before, now = _run(old, new, list(jobs.values()))
    for name, job, one, other in zip(jobs, jobs.values(), before, now, strict=True):
        handed = {}
        for side, result in (("old", one), ("new", other)):
            for done, chunk in enumerate(result["chunks"][:-1], 1):
                handed[f"from {side}, chunk {done}"] = {
                    **job,
                    "start": chunk["saved"],
                    "chunks": job["chunks"][done:],
                    "other": result["chunks"][-3]["saved"],
                }
        again, others = _run(old, new, list(handed.values()))
        pairs = [("undisturbed", _plain(one), _plain(other))]
        for which, found in (("old", again), ("new", others)):
            pairs += [
                (f"{case}, {which} continues", _plain(one["chunks"][-n:]), _plain(result["chunks"]))
                for case, result in zip(handed, found, strict=True)
                if (n := len(result["chunks"]))
            ]
        pairs += [
            (f"{case}, merged", _plain(left["merged"]), _plain(right["merged"]))
            for case, left, right in zip(handed, again, others, strict=True)
        ]
        yield finding("selector", name, pairs)


def _run(old: Runner, new: Runner, jobs: list[dict[str, Any]]) -> tuple[list[Any], list[Any]]:
    with ThreadPoolExecutor() as threads:
        sides = [threads.submit(side.selector, jobs) for side in (old, new)]
        return sides[0].result(), sides[1].result()


def _plain(value: Any) -> Any:
    """Saved selectors as the arrays in them; the archive around them has the time in it."""
    match value:
        case {"saved": bytes(content)}:
            return {**value, "saved": selector_members(content)}
        case dict():
            return {name: _plain(item) for name, item in value.items()}
        case list():
            return [_plain(item) for item in value]
    return value
