"""`stream-fs produce` on a real broker: what arrives in the topic, and how it ends."""

from __future__ import annotations

import io
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import orjson
import pytest
from confluent_kafka import Consumer, TopicPartition

from stream_fs.cli.main import main
from stream_fs.service.exit_codes import ExitCode
from stream_fs.wire import RecordDecoder
from tests.integration.service.conftest import MakeStream
from tests.integration.service.services import ROOT
from tests.integration.service.stream import Stream, chunks, rows
from tests.support.processes import wait_until
from tests.support.topics import TIMEOUT_SECONDS, Topics

Capture = pytest.CaptureFixture[str]


def produce(stream: Stream, path: Path | str, *arguments: str) -> int:
    return main(["produce", "--config", str(stream.file()), str(path), *arguments])


def arrived(stream: Stream, partition: int = 0) -> list[bytes | None]:
    return [record.value for record in stream.committed(stream.inputs[0], partition).values()]


def test_records_arrive_as_they_are_and_in_their_order(
    stream: Stream, tmp_path: Path, capsys: Capture
) -> None:
    values = [*chunks(1), b"\x80", b"\xa3bad"]
    path = tmp_path / "x.msgpack"
    path.write_bytes(b"".join(values))
    assert produce(stream, path) == ExitCode.OK
    assert arrived(stream) == values
    out, err = capsys.readouterr()
    line = rf"produced {len(values)} records to {stream.only.topic} in \d+\.\d s \(\d+ records/s\)"
    assert re.fullmatch(line, out.strip())
    assert err == ""  # no bar where there is no terminal


def test_many_small_records_into_a_topic_that_allows_small_batches_only(
    stream: Stream, topics: Topics, tmp_path: Path
) -> None:
    """A batch is what the broker limits, and the client does not divide one that is refused."""
    name = topics.create("small", config={"max.message.bytes": "5000"})
    values = chunks(100)
    path = tmp_path / "x.msgpack"
    path.write_bytes(b"".join(values))
    assert produce(stream, path, "--topic", name) == ExitCode.OK
    assert [record.value for record in stream.committed(name).values()] == values


def test_json_lines_into_a_stream_of_json(make_stream: MakeStream, tmp_path: Path) -> None:
    stream = make_stream({"stream.format": "json"})
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"v":1, "views":{}}\nbad\n')
    assert produce(stream, path) == ExitCode.OK
    assert arrived(stream) == [b'{"v":1, "views":{}}', b"bad"]


def test_json_lines_into_a_stream_of_message_pack(stream: Stream, tmp_path: Path) -> None:
    given = [{name: row.tolist() for name, row in views.items()} for views in rows(20)]
    lines = [orjson.dumps({"v": 1, "views": views}) for views in given]
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\n".join(lines))
    assert produce(stream, path) == ExitCode.OK
    settings = stream.configuration().stream_settings()
    batch = RecordDecoder(settings.views, "msgpack").decode(arrived(stream))
    assert len(batch.good) == 20
    expected = [views["a"] for views in given if "a" in views]
    assert batch.views["a"].dense().tolist() == expected


def test_arrays_with_missing_views_a_limit_and_a_partition(
    make_stream: MakeStream, tmp_path: Path
) -> None:
    stream = make_stream(partitions=3)
    rng = np.random.default_rng(0)
    path = tmp_path / "x.npz"
    np.savez(path, a=rng.random((50, 6)), b=rng.random((50, 4)))
    flags = ["--missing", "0.4", "--seed", "1", "--repeat", "3", "--limit", "120"]
    assert produce(stream, path, *flags, "--partition", "2") == ExitCode.OK
    assert arrived(stream, 0) == arrived(stream, 1) == []
    settings = stream.configuration().stream_settings()
    batch = RecordDecoder(settings.views, "msgpack").decode(arrived(stream, 2))
    assert len(batch.good) == 120
    present = [int(part.present.sum()) for part in batch.views.values()]
    assert all(60 < count < 110 for count in present)
    assert sum(present) < 220


def test_without_a_partition_all_of_them_get_some(make_stream: MakeStream, tmp_path: Path) -> None:
    stream = make_stream(partitions=2)
    path = tmp_path / "x.msgpack"
    path.write_bytes(b"".join(chunks(200)))
    assert produce(stream, path) == ExitCode.OK
    first, second = arrived(stream, 0), arrived(stream, 1)
    assert sorted(map(bytes, filter(None, first + second))) == sorted(chunks(200))
    assert first
    assert second


def test_records_may_have_timestamps(stream: Stream, topics: Topics, tmp_path: Path) -> None:
    path = tmp_path / "x.msgpack"
    path.write_bytes(b"".join(chunks(1)))
    flags = ["--first-timestamp", "1700000000000", "--timestamp-step", "250", "--limit", "3"]
    assert produce(stream, path, *flags) == ExitCode.OK
    reader = Consumer({"bootstrap.servers": topics.bootstrap, "group.id": "unused"})
    reader.assign([TopicPartition(stream.only.topic, 0, 0)])
    found = reader.consume(3, TIMEOUT_SECONDS)
    reader.close()
    assert [message.timestamp()[1] - 1700000000000 for message in found] == [0, 250, 500]


def test_standard_input(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    values = chunks(1)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"".join(values))))
    assert produce(stream, "-", "--format", "msgpack", "--rate", "10000") == ExitCode.OK
    assert arrived(stream) == values


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--partition", "7"], "has 1 partitions, counted from 0"),
        (["--topic", "nobody-made-this"], "nobody-made-this does not exist"),
    ],
)
def test_a_missing_topic_or_partition_is_an_error(
    stream: Stream, tmp_path: Path, capsys: Capture, arguments: list[str], message: str
) -> None:
    path = tmp_path / "x.msgpack"
    path.write_bytes(chunks(1)[0])
    assert produce(stream, path, *arguments) == ExitCode.CONFIGURATION
    assert message in capsys.readouterr().err


def test_a_broken_file_ends_with_the_count_of_delivered_records(
    stream: Stream, tmp_path: Path, capsys: Capture
) -> None:
    values = chunks(1)
    path = tmp_path / "x.msgpack"
    path.write_bytes(b"".join(values) + b"\xc1")
    assert produce(stream, path) == ExitCode.REFUSED
    out, err = capsys.readouterr()
    assert out.startswith(f"produced {len(values)} records")
    assert f"byte {sum(map(len, values))} is not MessagePack" in err
    assert arrived(stream) == values


def test_a_record_that_does_not_fit_ends_with_counts(
    stream: Stream, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"small\n" + b"x" * 2_000_000)
    assert produce(stream, path) == ExitCode.BROKER
    out, err = capsys.readouterr()
    assert "produced 1 records" in out
    assert "record 1 of 2000000 bytes" in err
    assert "raise max.message.bytes" in err


def test_records_that_the_broker_refuses_end_with_counts(
    stream: Stream, topics: Topics, tmp_path: Path, capsys: Capture
) -> None:
    narrow = topics.create("narrow", config={"max.message.bytes": "1000"})
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"small\n" + b"x" * 5000)
    assert produce(stream, path, "--topic", narrow, "--rate", "5") == ExitCode.BROKER
    out, err = capsys.readouterr()
    message = re.search(r"(\d) of (\d) records delivered, (\d) not delivered", err)
    assert message is not None
    delivered, sent, lost = map(int, message.groups())
    assert delivered + lost == sent == 2
    assert f"produced {delivered} records" in out


def test_an_interrupt_ends_with_the_count_of_delivered_records(
    stream: Stream, tmp_path: Path
) -> None:
    path = tmp_path / "x.msgpack"
    path.write_bytes(b"".join(chunks(1)))
    command = ["produce", "--config", str(stream.file()), str(path)]
    # A shell that runs this in the background may ignore SIGINT, and hand that down.
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from stream_fs.cli.main import main; sys.exit(main())"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, *command, "--rate", "20", "--repeat", "1000"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: len(arrived(stream)) > 3, "nothing arrives")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT_SECONDS)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, err) == (ExitCode.INTERRUPTED, "")
    assert out.startswith(f"produced {len(arrived(stream))} records")
