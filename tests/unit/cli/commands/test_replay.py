"""`stream-fs replay` as a user runs it: what it prints and where, how it ends, and kill -9."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from stream_fs.cli.main import main
from stream_fs.service.exit_codes import ExitCode
from stream_fs.wire import encode_record
from tests.support.replay_folder import ReplayFolder, values

Capture = pytest.CaptureFixture[str]
PATIENCE_SECONDS = 120.0
ROOT = Path(__file__).parents[4]


@pytest.fixture
def place(tmp_path: Path) -> ReplayFolder:
    return ReplayFolder(tmp_path / "mine")


# --- what it prints -------------------------------------------------------------------------------


def test_rankings_go_to_standard_output_and_the_summary_to_standard_error(
    place: ReplayFolder, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["replay", "--config", str(place.config), str(place.input)]) == ExitCode.OK
    out, err = capfdbinary.readouterr()
    rankings = [json.loads(line) for line in out.splitlines()]
    assert [ranking["sequence"] for ranking in rankings] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [line.split(maxsplit=1)[0] for line in err.decode().splitlines()] == [
        "records",
        "dead",
        "chunks",
        "rankings",
        "incomplete",
        "time",
    ]
    assert b"records       218\n" in err
    assert b"dead letters  18 (version 18)\n" in err
    assert b"incomplete    0 records in a chunk that is not full\n" in err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(place.input.read_bytes())))
    command = ["replay", "--config", str(place.config), "-", "--format", "msgpack"]
    assert main(command) == ExitCode.OK
    assert capfdbinary.readouterr()[0] == out


def test_in_files_the_same(place: ReplayFolder, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(place.command()) == ExitCode.OK
    assert capfdbinary.readouterr()[0] == b""
    assert main(["replay", "--config", str(place.config), str(place.input)]) == ExitCode.OK
    assert capfdbinary.readouterr()[0] == place.rankings.read_bytes()
    letters = [json.loads(line) for line in place.letters.read_text().splitlines()]
    assert {letter["headers"]["stream-fs-reason"] for letter in letters} == {"version"}


def test_records_that_wait_for_their_chunk_are_told(place: ReplayFolder, capsys: Capture) -> None:
    place.input.write_bytes(b"".join(values(75)))
    assert main(place.command()) == ExitCode.OK
    # 60 and, of what follows, 15 good ones and a bad one: 60 good ones are the first chunk.
    message = "incomplete    15 records and 1 bad one in a chunk that is not full\n"
    assert message in capsys.readouterr().err
    assert main(place.command()) == ExitCode.OK
    err = capsys.readouterr().err
    assert "records       16, from 65 on" in err
    assert "rankings      0 of them in this run" in err
    assert message in err


@pytest.mark.parametrize(
    ("policy", "letters", "waiting"),
    [
        ("dead_letter", "0\n", "0 records and 90 bad ones in"),
        ("skip", "90 (dimension 90)\n", "0 records in"),
    ],
)
def test_bad_records_that_wait_are_told_from_good_ones(
    policy: str, letters: str, waiting: str, place: ReplayFolder, capsys: Capture
) -> None:
    place.input.write_bytes(encode_record({"fourier": np.ones(3)}) * 90)
    flags = ["--set", f"dead_letters.policy={policy}"]
    assert main(place.command(*flags)) == ExitCode.OK
    err = capsys.readouterr().err
    assert f"dead letters  {letters}" in err
    assert f"incomplete    {waiting} a chunk that is not full\n" in err


def test_timestamps_are_in_the_rankings(place: ReplayFolder) -> None:
    flags = ["--first-timestamp", "5000", "--timestamp-step", "10"]
    assert main(place.command(*flags)) == ExitCode.OK
    first = json.loads(place.rankings.read_text().splitlines()[0])
    assert first["as_of"] == 5000 + 10 * (first["offsets"]["next"] - 1)


# --- how it ends ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x.msgpack", "--checkpoint", "c"], "--checkpoint: requires --rankings FILE"),
        (["x.msgpack", "--rankings", "r", "--dead-letters", "r"], "same file as --rankings"),
        (["x.msgpack", "--rankings", "r", "--checkpoint", "r"], "same file as --rankings"),
        (["x.msgpack", "--rankings", "x.msgpack"], "same file as --rankings"),
        (["x.msgpack"], "there is no file"),
        (["x.csv"], "give --format"),
    ],
)
def test_arguments_that_do_not_go_together_end_with_2(
    place: ReplayFolder, capsys: Capture, arguments: list[str], message: str
) -> None:
    assert main(["replay", "--config", str(place.config), *arguments]) == ExitCode.CONFIGURATION
    assert message in capsys.readouterr().err


def test_what_is_refused_ends_with_3(place: ReplayFolder, capsys: Capture) -> None:
    assert main(place.command()) == ExitCode.OK
    assert main(place.command("--set", "chunk.records=21")) == ExitCode.REFUSED
    assert "chunk.records: 20 → 21" in capsys.readouterr().err
    place.input.write_bytes(place.input.read_bytes()[:-1] + b"\xc1")
    assert main(place.command()) == ExitCode.REFUSED


# --- as a process ---------------------------------------------------------------------------------


class Process:
    def __init__(self, arguments: list[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "stream_fs.cli", *arguments],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline
            if self._process.poll() is not None:
                assert condition(), f"it has ended: {self.ends()}"
            time.sleep(0.002)

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def ends(self) -> tuple[int, str]:
        _, err = self._process.communicate(timeout=PATIENCE_SECONDS)
        return self._process.returncode, err

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()


@pytest.fixture
def start() -> Iterator[Callable[[list[str]], Process]]:
    made: list[Process] = []

    def starting(arguments: list[str]) -> Process:
        made.append(Process(arguments))
        return made[-1]

    yield starting
    for process in made:
        process.kill()


def longer_than(path: Path, length: int) -> Callable[[], bool]:
    return lambda: path.exists() and path.stat().st_size > length


RECORDS = 6000
"""So many that a process is at work for long enough to be killed at every share of them."""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    place = ReplayFolder(tmp_path_factory.mktemp("undisturbed"), RECORDS)
    assert main(place.command()) == ExitCode.OK
    return place.output


def test_killed_again_and_again_it_ends_as_if_it_was_not(
    tmp_path: Path, undisturbed: tuple[bytes, bytes], start: Callable[[list[str]], Process]
) -> None:
    place = ReplayFolder(tmp_path, RECORDS)
    whole = len(undisturbed[0])
    for share in (0.0, 0.01, 0.3, 0.31, 0.7):
        process = start(place.command())
        process.until(longer_than(place.rankings, round(whole * share)))
        process.kill()
        assert undisturbed[0].startswith(place.rankings.read_bytes()) or share == 0
        assert place.rankings.stat().st_size < whole
    assert main(place.command()) == ExitCode.OK
    assert place.output == undisturbed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_ends_in_order(
    tmp_path: Path,
    undisturbed: tuple[bytes, bytes],
    start: Callable[[list[str]], Process],
    number: signal.Signals,
) -> None:
    place = ReplayFolder(tmp_path, RECORDS)
    process = start(place.command())
    process.until(longer_than(place.rankings, len(undisturbed[0]) // 10))
    process.send(number)
    code, err = process.ends()
    assert code == ExitCode.INTERRUPTED
    assert "records " in err
    done = place.rankings.read_bytes()
    assert undisturbed[0].startswith(done)
    assert len(done) < len(undisturbed[0])
    assert main(place.command()) == ExitCode.OK
    assert place.output == undisturbed


@pytest.mark.parametrize("flag", ["--rankings", "--dead-letters", "--checkpoint"])
def test_a_place_that_does_not_exist_cannot_be_written_to(
    flag: str, place: ReplayFolder, start: Callable[[list[str]], Process]
) -> None:
    nowhere = str(place.config.parent / "none" / "file")
    code, err = start(place.command(flag, nowhere)).ends()
    assert code == ExitCode.STORAGE
    assert err.startswith(f"stream-fs: {nowhere} cannot be written: No such file or directory. ")


def test_rankings_that_find_no_room_end_it(place: ReplayFolder) -> None:
    with Path("/dev/full").open("wb") as full:
        code, err = printing(place, full)
    assert code == ExitCode.STORAGE
    assert err.startswith("stream-fs: standard output cannot be written: No space left on device")
    assert err.count("\n") == 1


def test_a_reader_of_rankings_that_has_seen_enough_is_no_error(place: ReplayFolder) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    with open(theirs, "wb") as gone:  # noqa: PTH123  # a pipe has no path
        assert printing(place, gone) == (ExitCode.OK, "")


def printing(place: ReplayFolder, output: BinaryIO) -> tuple[int, str]:
    """A replay whose rankings go to standard output."""
    ended = subprocess.run(
        [sys.executable, "-m", "stream_fs.cli", "replay", "--config", place.config, place.input],
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        cwd=ROOT,
    )
    return ended.returncode, ended.stderr


def test_a_second_one_on_the_same_checkpoint_is_refused(
    tmp_path: Path, undisturbed: tuple[bytes, bytes], start: Callable[[list[str]], Process]
) -> None:
    place = ReplayFolder(tmp_path, RECORDS)
    process = start(place.command())
    process.until(longer_than(place.rankings, 0))
    process.send(signal.SIGSTOP)
    assert main(place.command()) == ExitCode.REFUSED
    process.send(signal.SIGCONT)
    assert process.ends()[0] == ExitCode.OK
    assert place.output == undisturbed


def test_on_a_terminal_it_shows_how_far_it_is(place: ReplayFolder) -> None:
    """And only there: the other tests find nothing but the summary."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "stream_fs.cli", *place.command()],
        cwd=ROOT,
        env={**os.environ, "TERM": "xterm"},
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    said = b""
    try:
        while block := os.read(ours, 1 << 16):
            said += block
    except OSError:  # Linux has it so when the other end is closed
        pass
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert b"replaying" in said
    assert b"\x1b[" in said
    assert said.splitlines()[-1].startswith(b"time ")
