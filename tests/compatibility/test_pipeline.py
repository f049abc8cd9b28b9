"""Topics of release 0.1.0, written again by the present code, and continued by it.

`compare` shows on one machine that all bytes are the same. Here numbers are equal to a tolerance;
everything else is the same: offsets, keys, headers, counts, the order of features, dead letters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.compatibility.cases import CASES, LETTERS, RANKINGS, STATE, process
from tests.compatibility.comparison import differences
from tests.compatibility.formats import (
    digests_of,
    letters_by_partition,
    rankings_by_key,
    reworded_letters,
    state_records,
    without_additions,
)
from tests.compatibility.present import TOPICS, run
from tests.compatibility.record import recorded

Topics = Mapping[str, list[dict[str, Any]]]

TOLERANCES = {case.name: case.tolerance for case in CASES}
NAMES = sorted(recorded("pipeline"))


def published(topics: Topics, known: Topics | None = None) -> dict[str, Any]:
    """Rankings by key, dead letters and states by partition; `known` rankings have a name."""
    rankings = topics[RANKINGS][0]["records"]
    letters = reworded_letters(topics[LETTERS][0]["records"])
    named = digests_of(rankings)
    if known is not None:
        named |= digests_of(known[RANKINGS][0]["records"])
    return {
        "rankings": rankings_by_key(rankings),
        "letters": letters_by_partition(letters),
        "states": [state_records(partition["records"], named) for partition in topics[STATE]],
        "ends": [partition["end"] for partition in topics[STATE]],
    }


def plain(topics: Topics) -> dict[str, list[dict[str, Any]]]:
    return without_additions(topics, rankings=RANKINGS, states=[STATE])


def prefix(topics: Topics, ends: Mapping[str, list[int]]) -> dict[str, list[dict[str, Any]]]:
    """The topics as they were when they ended there."""
    return {name: kept(topics[name], ends[name]) for name in TOPICS}


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_is_published_and_saved_as_before(name: str) -> None:
    recording = recorded("pipeline")[name]
    found = run(recording["job"])
    before, now = published(recording["result"]["topics"]), published(plain(found["topics"]))
    assert list(differences(before, now, TOLERANCES[name])) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_present_code_follows_a_process_that_has_shut_down(name: str) -> None:
    recording = recorded("pipeline")[name]
    job, result = recording["job"], recording["result"]
    for done in range(1, len(job["steps"])):
        kind, *details = job["steps"][done - 1]
        # What a crash leaves is an open transaction, which a recording does not hold.
        if kind != "process" or details[0]["crash"] is not None:
            continue
        start = prefix(result["topics"], result["ends"][done - 1])
        found = run({**job, "start": start, "steps": job["steps"][done:]})
        before, now = published(result["topics"]), published(plain(found["topics"]))
        assert list(differences(before, now, TOLERANCES[name], f"after {done}")) == []


@pytest.mark.parametrize("commit", [0, 1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_the_present_code_continues_after_any_commit(name: str, commit: int) -> None:
    """After some of them there is no snapshot: the chunks since the last one are replayed."""
    recording = recorded("pipeline")[name]
    result = recording["result"]
    before = published(result["topics"])
    states, behind = zip(*(upto(partition, commit) for partition in before["states"]), strict=True)
    inputs = {"in": result["topics"]["in"], STATE: kept(result["topics"][STATE], states)}
    processes = [process(merge=merge) for merge in (False, True)]
    found = run({**recording["job"], "start": inputs, "steps": processes})
    topics = plain(found["topics"])
    for number, record in enumerate(behind):
        key = f"golden/in/{number}".encode()
        there = [r for r in before["rankings"][key] if r["sequence"] > record["chunk"]]
        now = published(topics, known=result["topics"])
        assert there
        assert list(differences(there, now["rankings"][key], TOLERANCES[name])) == []
        assert now["letters"].get(b"%d" % number, []) == [
            letter
            for letter in before["letters"].get(b"%d" % number, [])
            if int(dict(map(tuple, letter[-1]))["stream-fs-offset"]) >= record["next"]
        ]
        last = final(before["states"][number]), final(now["states"][number])
        assert list(differences(*last, TOLERANCES[name])) == []
        merged, again = (found["rankings"][b"golden"][-1] for found in (before, now))
        for field in ("as_of", "records", "views", "sources"):
            assert list(differences(merged[field], again[field], TOLERANCES[name])) == []


def upto(records: list[dict[str, Any]], commit: int) -> tuple[int, dict[str, Any]]:
    """The end of a state behind a commit, counted from the first one, and its progress record."""
    found = [(r["offset"], r["record"]) for r in records if "chunk" in r.get("record", ())]
    offset, record = [pair for pair in found if pair[1]["chunk"]][commit]
    return offset + 2, record  # the end of the transaction lies behind the record


def kept(partitions: list[dict[str, Any]], ends: Sequence[int]) -> list[dict[str, Any]]:
    """The partitions up to their ends."""
    return [
        {"end": end, "records": [record for record in partition["records"] if record[0] < end]}
        for partition, end in zip(partitions, ends, strict=True)
    ]


def final(records: list[dict[str, Any]]) -> list[Any]:
    """The last snapshot and the last progress, whatever lies between and wherever they lie."""
    *_, snapshot = (r for r in records if "manifest" in r)
    *_, progress = (r["record"] for r in records if "chunk" in r.get("record", ()))
    return [
        [snapshot[name] for name in ("manifest", "arrays", "extra")],
        {name: value for name, value in progress.items() if name != "snapshots"},
    ]
