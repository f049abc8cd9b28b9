"""Processes over topics in memory: crashes at every step, and states that both continue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.compatibility.cases import (
    CASES,
    LETTERS,
    MERGE_STEPS,
    RANKINGS,
    STATE,
    STEPS,
    Case,
    Job,
    process,
    with_linger,
)
from tests.compatibility.formats import reworded_letters, without_additions
from tests.compatibility.releases import Runner
from tests.compatibility.sections import Finding, Options, finding

Result = dict[str, Any]


def compare(old: Runner, new: Runner, options: Options) -> Iterator[Finding]:
    """Every case with and without linger."""
    for case in CASES:
        for linger in (0.0, 10.0) if options.cases in case.name else ():
            yield _case(with_linger(case, linger), old, new, options.seed)


def _case(case: Case, old: Runner, new: Runner, seed: int) -> Finding:
    crashes = [(step, n) for step in STEPS for n in (0, 2)] + [(step, 0) for step in MERGE_STEPS]
    jobs = {"undisturbed": case.job(seed)}
    jobs |= {f"crash at {step}:{n}": case.job(seed, (step, n)) for step, n in crashes}
    before, now = _run(old, new, list(jobs.values()))
    found = list(_pairs(jobs, before, now))
    # Both sides continue what each of them has left.
    handed: dict[str, Job] = {}
    for side, result in (("old", before[0]), ("new", now[0])):
        handed |= {
            f"from {side}, {name}": job for name, job in _continued(jobs["undisturbed"], result)
        }
    again, others = _run(old, new, list(handed.values()))
    found += _pairs(handed, again, others)
    # The end is the same in whichever order the two follow each other.
    for name, results in zip(handed, zip(again, others, strict=True), strict=True):
        if "step" in name:
            found += [(f"{name}, in the end", _plain(before[0]), _plain(r)) for r in results]
    return finding("pipeline", f"{case.name}, linger {case.linger:g}", found)


def _run(old: Runner, new: Runner, jobs: Sequence[Job]) -> tuple[list[Result], list[Result]]:
    with ThreadPoolExecutor() as threads:
        sides = [threads.submit(side.pipeline, jobs) for side in (old, new)]
        return sides[0].result(), sides[1].result()


def _pairs(
    jobs: Mapping[str, Job], before: Sequence[Result], now: Sequence[Result]
) -> Iterator[tuple[str, Any, Any]]:
    for name, one, other in zip(jobs, before, now, strict=True):
        before_topics = {**_plain(one), "ends": one["ends"], "diverged": 0}
        yield name, before_topics, {**_plain(other), **{n: other[n] for n in ("ends", "diverged")}}


def _plain(result: Result) -> dict[str, Any]:
    """All topics without declared additions and in present words."""
    topics = without_additions(result["topics"], rankings=RANKINGS, states=[STATE])
    letters = topics[LETTERS][0]
    topics[LETTERS] = [{**letters, "records": reworded_letters(letters["records"])}]
    return topics


def _continued(job: Job, result: Result) -> Iterator[tuple[str, Job]]:
    """Jobs that begin where a process has ended, or in the middle of its work."""
    for done in range(1, len(job["steps"])):
        if job["steps"][done - 1][0] == "process":
            start = _prefix(result["topics"], result["ends"][done - 1])
            yield f"step {done}", {**job, "start": start, "steps": job["steps"][done:]}
    processes = [process(merge=merge) for merge in (False, True)]
    commits = [
        [record[0] for record in partition["records"] if _is_progress(record[2])]
        for partition in result["topics"][STATE]
    ]
    for number in range(1, min(map(len, commits))):
        ends = {STATE: [offsets[number] + 2 for offsets in commits]}
        start = {"in": result["topics"]["in"], **_prefix(result["topics"], ends)}
        yield f"commit {number}", {**job, "start": start, "steps": processes}


def _is_progress(key: bytes) -> bool:
    return key.startswith(b"golden/") and key.endswith(b"/progress") and b"/merge/" not in key


def _prefix(topics: Mapping[str, Any], ends: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """The topics as they were when they ended there."""
    return {
        name: [
            {"end": end, "records": [record for record in partition["records"] if record[0] < end]}
            for partition, end in zip(topics[name], ends[name], strict=True)
        ]
        for name in ends
    }
