"""Files and a broker: the same records give the same bytes, and a model moves between the two."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from stream_fs.cli.main import main
from stream_fs.service.exit_codes import ExitCode
from tests.integration.service.conftest import MakeMember
from tests.integration.service.stream import Stream, chunks

BAD = b"\x81\xa1v\x09"
STAMPS = ["--first-timestamp", "1700000000000", "--timestamp-step", "250"]


def written(folder: Path, values: list[bytes]) -> Path:
    path = folder / "records.msgpack"
    path.write_bytes(b"".join(values))
    return path


def test_a_replay_writes_what_the_service_publishes(
    stream: Stream, member: MakeMember, tmp_path: Path
) -> None:
    values = chunks(5)
    for place in (70, 50, 3):
        values.insert(place, BAD)
    path = written(tmp_path, values)
    config = str(stream.file())
    rankings, letters = tmp_path / "rankings.jsonl", tmp_path / "letters.jsonl"
    assert main(["produce", "--config", config, str(path), *STAMPS]) == ExitCode.OK
    outputs = ["--rankings", str(rankings), "--dead-letters", str(letters)]
    assert main(["replay", "--config", config, str(path), *STAMPS, *outputs]) == ExitCode.OK
    service = member(stream)
    service.completes(5)
    service.stop()
    published = stream.rankings()[stream.only]
    assert rankings.read_bytes().splitlines() == [record.value for record in published]
    found = [json.loads(line) for line in letters.read_text().splitlines()]
    dead = stream.letters()[stream.only]
    assert [base64.b64decode(line["value"]) for line in found] == [BAD] * 3
    assert [line["headers"] for line in found] == [
        {name: (value or b"").decode() for name, value in record.headers} for record in dead
    ]
