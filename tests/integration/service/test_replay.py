"""Files and a broker: the same records give the same bytes, and a model moves between the two."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from stream_fs.cli.main import main
from stream_fs.pipeline import events
from stream_fs.service.exit_codes import ExitCode
from tests.integration.service.conftest import MakeMember, MakeStream
from tests.integration.service.stream import CHUNK, FIRST, Stream, chunks

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


def test_a_model_moves_from_files_to_the_service_and_back(
    stream: Stream, member: MakeMember, tmp_path: Path
) -> None:
    """Tried on files, gone live in the middle, and continued on files: the same rankings."""
    values, config = chunks(9), str(stream.file())
    path = written(tmp_path, values)
    whole = tmp_path / "whole.jsonl"
    command = ["replay", "--config", config, *STAMPS, "--rankings"]
    assert main([*command, str(whole), str(path)]) == ExitCode.OK
    expected = whole.read_bytes().splitlines()
    assert len(expected) == 9

    tried = tmp_path / "tried"
    part = tmp_path / "part.msgpack"
    part.write_bytes(b"".join(chunks(3)))
    assert (
        main([*command, str(tmp_path / "3.jsonl"), str(part), "--checkpoint", str(tried)])
        == ExitCode.OK
    )
    model, place = tmp_path / "model", ["--config", config]
    assert main(["checkpoint", "export", *place, "--replay", str(tried), str(model)]) == ExitCode.OK
    assert main(["produce", *place, str(path), *STAMPS, "--limit", str(len(chunks(6)))]) == 0
    assert main(["checkpoint", "import", *place, str(model)]) == ExitCode.OK
    service = member(stream)
    service.completes(6)
    service.stop()
    published = [record.value for record in stream.rankings()[stream.only]]
    assert published == expected[3:6]

    assert main(["checkpoint", "export", *place, str(model)]) == ExitCode.OK
    back, last = tmp_path / "back", tmp_path / "9.jsonl"
    assert main(["checkpoint", "import", *place, "--replay", str(back), str(model)]) == ExitCode.OK
    assert main([*command, str(last), str(path), "--checkpoint", str(back)]) == ExitCode.OK
    assert last.read_bytes().splitlines() == expected[6:]


def test_an_import_fences_the_service_and_the_sequence_continues(
    make_stream: MakeStream, member: MakeMember, tmp_path: Path
) -> None:
    """During a run, and on a stream of another name: it continues from the import."""
    source, target = make_stream(), make_stream()
    source.feed(chunks(4))
    first = member(source)
    first.completes(4)
    model = str(tmp_path / "model")
    assert main(["checkpoint", "export", "--config", str(source.file()), model]) == ExitCode.OK

    target.feed(chunks(1))
    second = member(target)
    second.completes(1)
    command = ["checkpoint", "import", "--config", str(target.file()), model]
    assert main([*command, "--yes"]) == ExitCode.CONFIGURATION  # the input is not that long
    assert main([*command, "--yes", "--to-offset", str(FIRST)]) == ExitCode.OK
    target.feed(chunks(3)[FIRST:])
    second.completes(6)
    assert second.of(events.Fenced)
    published = [json.loads(record.value or b"") for record in target.rankings()[target.only]]
    assert [ranking["sequence"] for ranking in published] == [1, 5, 6]
    assert [ranking["offsets"]["from"] for ranking in published] == [0, FIRST, FIRST + CHUNK]
