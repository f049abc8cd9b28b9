"""Files of `stream-fs replay` of release 0.1.0: the present code writes them, and goes on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from stream_fs.cli.main import main
from tests.compatibility.cases import CASES, RANKINGS
from tests.compatibility.comparison import differences
from tests.compatibility.formats import (
    digest,
    journal,
    parsed,
    plain_replay,
    ranking_lines,
    state_records,
)
from tests.compatibility.record import recorded
from tests.compatibility.replays import Folder, Recorded

TOLERANCES = {case.name: case.tolerance for case in CASES}
FORMATS = {case.name: "msgpack" if "msgpack" in case.output else "json" for case in CASES}
NAMES = sorted(recorded("replay"))


def command(arguments: Sequence[str]) -> None:
    assert main(arguments) == 0


def plain(name: str, found: Recorded) -> dict[str, Any]:
    """What the files hold, without what is declared to be added."""
    format = FORMATS[name]
    rankings, letters, transactions = plain_replay(*found[:3], format)
    values = ranking_lines(rankings, format)
    named = {digest(value): number for number, value in enumerate(values)}
    lengths: dict[str, int] = {}
    for transaction in transactions:
        # They depend on how many digits numbers have; every one was compared with its file above.
        lengths = transaction["notes"].pop("outputs", lengths)
    return {
        "rankings": [parsed(value, format) for value in values],
        "whole": lengths[RANKINGS] == len(rankings),
        "letters": [json.loads(line) for line in letters.splitlines()],
        "states": [states(transaction, named) for transaction in transactions],
        "notes": [transaction["notes"] for transaction in transactions],
        "ends": [transaction["end"] for transaction in transactions],
    }


def states(transaction: dict[str, Any], named: dict[str, int]) -> list[dict[str, Any]]:
    """The records of a transaction as those of a state topic."""
    return state_records(
        [[o, 0, key, value, []] for o, key, value in transaction["records"]], named
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_replay_writes_what_it_did(name: str, tmp_path: Path) -> None:
    recording = recorded("replay")[name]
    folder = Folder(tmp_path, name, recording["config"])
    found = folder.replay(command, recording["contents"])
    before = plain(name, Recorded(*recorded("replay")[name]["result"]))
    assert list(differences(before, plain(name, found), TOLERANCES[name])) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_replay_goes_on_from_any_transaction(name: str, tmp_path: Path) -> None:
    recording = recorded("replay")[name]
    recorded_files = Recorded(*recording["result"])
    transactions = len(journal(recorded_files.checkpoint))
    before = plain(name, Recorded(*recorded("replay")[name]["result"]))
    for done in range(1, transactions):
        folder = Folder(tmp_path / str(done), name, recording["config"])
        left = folder.lay(recorded_files, done)
        found = plain(name, folder.replay(command, recording["contents"][-len(left) :]))
        for part in ("rankings", "letters", "whole"):
            wrong = differences(before[part], found[part], TOLERANCES[name], f"{done} {part}")
            assert list(wrong) == []
        if "linger_seconds = 0.0" in recording["config"]:  # each chunk has a transaction
            wrong = differences(before, found, TOLERANCES[name], f"{done}")
            assert list(wrong) == []
