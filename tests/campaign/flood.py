"""Floods of bad records on a real broker: the service stops with instructions, and continues.

Earlier output stays as it is, the bad records are dead letters once, or are skipped as the operator
has chosen, and the good records behind them are ranked as without the flood.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from stream_fs.broker import running_broker
from stream_fs.service.exit_codes import ExitCode
from stream_fs.wire import decode_ranking, ranking_payload
from tests.campaign.fault_result import AddArgument, FaultResult
from tests.integration.service.services import ROOT, Service
from tests.integration.service.stream import CHUNK, FIRST, Changes, Stream, chunks
from tests.integration.service.undisturbed import undisturbed
from tests.support.processes import wait_until
from tests.support.recovery.comparison import compare, letter_name, ranking_name
from tests.support.recovery.subscriber import Received
from tests.support.topics import TIMEOUT_SECONDS, Topics

EXPECTED_MESSAGES: Final = (
    "The producer seems to be broken",
    "--keep-model --to-offset N`",
    "dead_letters.policy = 'skip'",
    "dead_letters.max_ratio",
)
"""Instructions that the operator gets when the service stops."""


SKIP: Final[Changes] = {"dead_letters.policy": "skip"}


class Flood(NamedTuple):
    """Bad records behind the first chunk, and the operator's remedy."""

    name: str
    bad: int
    limits: Changes
    remedy: Changes
    moved: bool
    """Whether the operator resets the stream to the offset behind them."""


def all_floods(options: Namespace) -> list[Flood]:
    ratio = {"dead_letters.tolerated": 50, "dead_letters.max_ratio": 0.3}
    few = {"dead_letters.max_open": options.flood // 2, "dead_letters.max_ratio": 1.0}
    raised = {"dead_letters.max_ratio": 1.0, "dead_letters.max_open": 10 * options.flood}
    return [
        Flood("flood, the limit raised", options.flood, ratio, raised, moved=False),
        Flood("flood in an open chunk, the limit raised", options.flood, few, raised, moved=False),
        Flood("flood, skipped", options.flood, ratio, SKIP, moved=False),
        Flood("flood, moved past it", options.flood, ratio, {}, moved=True),
    ]


def run_fault(stream: Stream, flood: Flood) -> FaultResult:
    """Stop at a flood, apply the remedy, and compare with an undisturbed stream."""
    problems: list[str] = []
    stream.feed(chunks(1))
    with _served(stream, flood.limits) as service:
        wait_until(lambda: len(stream.rankings()[stream.only]) == 1, "the first ranking")
        stream.feed([b"bad %d" % number for number in range(flood.bad)])
        code = service.wait()
        log = service.output
    if code != ExitCode.REFUSED:
        problems.append(f"it ended with {code}, not {ExitCode.REFUSED:d}")
    problems += [f"it did not log {text!r}" for text in EXPECTED_MESSAGES if text not in log]
    problems += ["it logged a traceback"] if "Traceback" in log else []
    again = _ends_again(stream, flood.limits)
    problems += [] if again == ExitCode.REFUSED else [f"restarted it ended with {again}"]
    if flood.moved:
        _move(stream, flood.limits, FIRST + flood.bad)
    stream.feed(chunks(2)[-CHUNK:])
    with _served(stream, {**flood.limits, **flood.remedy}) as service:
        wait_until(lambda: len(stream.rankings()[stream.only]) == 2, "the second ranking")
        service.terminate()
    return _account(stream, flood, code, problems)


def _account(stream: Stream, flood: Flood, code: int, problems: list[str]) -> FaultResult:
    found_rankings, found_letters = (
        [Received(one.key, one.value, one.headers) for one in output[stream.only]]
        for output in (stream.rankings(), stream.letters())
    )
    skipped = flood.moved or "dead_letters.policy" in flood.remedy
    lasting: dict[str, Any] = {
        "dead_letters.max_open": 10 * flood.bad,
        "dead_letters.max_ratio": 1.0,
    }
    expected = undisturbed(stream, {**lasting, **(SKIP if skipped else flood.remedy)})
    rankings, letters = (
        [Received(one.key, one.value, one.headers) for one in output[stream.only]]
        for output in expected
    )
    if flood.moved:
        rankings[1] = _beginning_at(FIRST + flood.bad, rankings[1])
    wanted = 0 if skipped else flood.bad
    if len(found_letters) != wanted:
        problems.append(f"{len(found_letters)} dead letters where {wanted} should be")
    return FaultResult(
        flood.name,
        flood.bad,
        compare(rankings, found_rankings, ranking_name),
        compare(letters, found_letters, letter_name) if wanted else None,
        shown=f"exit code {code}, and the same after a restart",
        problems=tuple(problems),
    )


def _beginning_at(offset: int, message: Received) -> Received:
    """The same ranking, of a chunk that begins at the operator's offset."""
    ranking = decode_ranking(message.value or b"")
    assert ranking.offsets is not None
    moved = ranking_payload(replace(ranking, offsets=(offset, ranking.offsets[1])))
    return Received(moved.key, moved.value, moved.headers)


@contextmanager
def _served(stream: Stream, changes: Changes) -> Iterator[Service]:
    service = Service(stream.file(changes))
    try:
        yield service
    finally:
        service.kill()


def _ends_again(stream: Stream, changes: Changes) -> int:
    with _served(stream, changes) as service:
        return service.wait()


def _move(stream: Stream, changes: Changes, offset: int) -> None:
    """Reset the stream to an offset as in the runbook."""
    topic, number = stream.only
    command = [sys.executable, "-m", "stream_fs.cli", "checkpoint", "reset"]
    place = ["--topic", topic, "--partition", str(number), "--to-offset", str(offset)]
    file = ["--config", str(stream.file(changes))]
    subprocess.run(
        [*command, *place, "--keep-model", "--yes", *file],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
    )


def run(options: Namespace) -> Iterator[FaultResult]:
    """One result for every flood."""
    with (
        tempfile.TemporaryDirectory(prefix="stream-fs-flood-") as folder,
        running_broker() as broker,
    ):
        for number, flood in enumerate(all_floods(options)):
            yield on(broker.bootstrap, Path(folder) / str(number), flood)


def on(bootstrap: str, folder: Path, flood: Flood) -> FaultResult:
    """One flood, with topics of its own."""
    folder.mkdir()
    topics = Topics(bootstrap)
    stream = Stream(topics, folder)
    try:
        return run_fault(stream, flood)
    except (AssertionError, TimeoutError, subprocess.SubprocessError) as error:
        return FaultResult(flood.name, flood.bad, shown="not finished", problems=(str(error),))
    finally:
        stream.remove()
        topics.remove()


def arguments(add: AddArgument) -> None:
    add("--flood", type=int, default=5_000, help="bad records in a flood")
