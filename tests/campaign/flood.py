"""Floods of bad records on a real broker: the service stops, says what to do, and goes on after it.

Nothing is lost: what was published before is there once, the bad records are dead letters once, or
passed over as the operator has chosen, and the good ones behind them are ranked as if nothing had
been.
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
from tests.campaign.fault_result import Account, AddArgument
from tests.integration.service.services import ROOT, Service
from tests.integration.service.stream import CHUNK, FIRST, Changes, Stream, chunks
from tests.integration.service.undisturbed import undisturbed
from tests.support.processes import wait_until
from tests.support.recovery.comparison import compare, letter_name, ranking_name
from tests.support.recovery.subscriber import Received
from tests.support.topics import PATIENCE_SECONDS, Topics

TOLD: Final = (
    "The producer seems to be broken",
    "--keep-model --to-offset N`",
    "dead_letters.policy = 'skip'",
    "dead_letters.max_ratio",
)
"""What the operator has to read when it stops."""


SKIP: Final[Changes] = {"dead_letters.policy": "skip"}


class Flood(NamedTuple):
    """Bad records behind the first chunk, and the way out of them."""

    name: str
    bad: int
    limits: Changes
    way_out: Changes
    moved: bool
    """Whether the operator moves the stream behind them, too."""


def floods(options: Namespace) -> list[Flood]:
    ratio = {"dead_letters.tolerated": 50, "dead_letters.max_ratio": 0.3}
    few = {"dead_letters.max_open": options.flood // 2, "dead_letters.max_ratio": 1.0}
    raised = {"dead_letters.max_ratio": 1.0, "dead_letters.max_open": 10 * options.flood}
    return [
        Flood("flood, the limit raised", options.flood, ratio, raised, moved=False),
        Flood("flood in an open chunk, the limit raised", options.flood, few, raised, moved=False),
        Flood("flood, skipped", options.flood, ratio, SKIP, moved=False),
        Flood("flood, moved past it", options.flood, ratio, {}, moved=True),
    ]


def suffer(stream: Stream, flood: Flood) -> Account:
    """Stop at a flood, find the way out, and compare with a stream that was never stopped."""
    problems: list[str] = []
    stream.feed(chunks(1))
    with _served(stream, flood.limits) as service:
        wait_until(lambda: len(stream.rankings()[stream.only]) == 1, "the first ranking")
        stream.feed([b"bad %d" % number for number in range(flood.bad)])
        code = service.ends()
        said = service.said
    if code != ExitCode.REFUSED:
        problems.append(f"it ended with {code}, not {ExitCode.REFUSED:d}")
    problems += [f"it did not say {text!r}" for text in TOLD if text not in said]
    problems += ["it showed where it stood in the code"] if "Traceback" in said else []
    again = _ends_again(stream, flood.limits)
    problems += [] if again == ExitCode.REFUSED else [f"started again it ended with {again}"]
    if flood.moved:
        _move(stream, flood.limits, FIRST + flood.bad)
    stream.feed(chunks(2)[-CHUNK:])
    with _served(stream, {**flood.limits, **flood.way_out}) as service:
        wait_until(lambda: len(stream.rankings()[stream.only]) == 2, "the second ranking")
        service.terminate()
    return _account(stream, flood, code, problems)


def _account(stream: Stream, flood: Flood, code: int, problems: list[str]) -> Account:
    found_rankings, found_letters = (
        [Received(one.key, one.value, one.headers) for one in output[stream.only]]
        for output in (stream.rankings(), stream.letters())
    )
    skipped = flood.moved or "dead_letters.policy" in flood.way_out
    lasting: dict[str, Any] = {
        "dead_letters.max_open": 10 * flood.bad,
        "dead_letters.max_ratio": 1.0,
    }
    expected = undisturbed(stream, {**lasting, **(SKIP if skipped else flood.way_out)})
    rankings, letters = (
        [Received(one.key, one.value, one.headers) for one in output[stream.only]]
        for output in expected
    )
    if flood.moved:
        rankings[1] = _beginning_at(FIRST + flood.bad, rankings[1])
    wanted = 0 if skipped else flood.bad
    if len(found_letters) != wanted:
        problems.append(f"{len(found_letters)} dead letters where {wanted} should be")
    return Account(
        flood.name,
        flood.bad,
        compare(rankings, found_rankings, ranking_name),
        compare(letters, found_letters, letter_name) if wanted else None,
        shown=f"exit code {code}, and again when started again",
        problems=tuple(problems),
    )


def _beginning_at(offset: int, message: Received) -> Received:
    """The same ranking, of a chunk that begins where the operator has said."""
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
        return service.ends()


def _move(stream: Stream, changes: Changes, offset: int) -> None:
    """As the runbook says."""
    topic, number = stream.only
    command = [sys.executable, "-m", "stream_fs.cli", "checkpoint", "reset"]
    place = ["--topic", topic, "--partition", str(number), "--to-offset", str(offset)]
    file = ["--config", str(stream.file(changes))]
    subprocess.run(
        [*command, *place, "--keep-model", "--yes", *file],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
    )


def run(options: Namespace) -> Iterator[Account]:
    """One account for every flood."""
    with (
        tempfile.TemporaryDirectory(prefix="stream-fs-flood-") as folder,
        running_broker() as broker,
    ):
        for number, flood in enumerate(floods(options)):
            yield on(broker.bootstrap, Path(folder) / str(number), flood)


def on(bootstrap: str, folder: Path, flood: Flood) -> Account:
    """One flood, with topics of its own."""
    folder.mkdir()
    topics = Topics(bootstrap)
    stream = Stream(topics, folder)
    try:
        return suffer(stream, flood)
    except (AssertionError, TimeoutError, subprocess.SubprocessError) as error:
        return Account(flood.name, flood.bad, shown="it came to nothing", problems=(str(error),))
    finally:
        stream.remove()
        topics.remove()


def arguments(add: AddArgument) -> None:
    add("--flood", type=int, default=5_000, help="bad records in a flood")
