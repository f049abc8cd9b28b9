"""The command line: what it prints, where, and how it ends."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

import pytest

from stream_fs import errors
from stream_fs.checkpoint import Owner, Progress, SnapshotPlace, StateKeys, encode_progress
from stream_fs.cli.commands import topics
from stream_fs.cli.main import main, parser
from stream_fs.selector.kernels import dispatch
from stream_fs.service.configuration import Configuration
from stream_fs.service.exit_codes import ExitCode
from stream_fs.service.observability.logging import set_up
from tests.support.configurations import LEAST
from tests.support.existing_topics import Existing
from tests.support.memory_broker import MemoryBroker
from tests.support.memory_transport import MemoryTransport

STATES = {"digits": "digits.state"}
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "stream.toml"
    path.write_text(LEAST)
    return str(path)


@pytest.fixture(autouse=True)
def _no_configuration_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STREAM_FS_CONFIG", raising=False)


def commands() -> list[list[str]]:
    return [
        ["run"],
        ["produce", "FILE"],
        ["replay", "FILE"],
        ["topics", "create"],
        ["topics", "check"],
        ["watch"],
        ["checkpoint", "inspect"],
        ["checkpoint", "reset"],
        ["checkpoint", "export", "FILE"],
        ["checkpoint", "import", "FILE"],
        ["config", "check"],
        ["config", "show"],
    ]


# --- help and usage -------------------------------------------------------------------------------


def test_help_tells_commands_and_exit_codes(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    output = capsys.readouterr().out
    names = "run replay topics produce watch checkpoint config demo version"
    for command in names.split():
        assert f"\n    {command}" in output
    for code in ExitCode:
        assert f"  {code.value:<4}{code.meaning}" in output


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_help_of_a_command_tells_where_its_configuration_comes_from(
    command: list[str], capsys: Capture
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command, "--help"])
    assert ended.value.code == 0
    output = capsys.readouterr().out
    for word in ("--config", "--set", "STREAM_FS_CONFIG", "--debug"):
        assert word in output


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["fly"],
        ["config"],
        ["topics"],
        ["config", "check", "--colour"],
        ["run", "x"],
        ["produce"],
    ],
)
def test_usage_errors_end_with_2(argv: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code == ExitCode.CONFIGURATION
    assert capsys.readouterr().err.startswith("usage: stream-fs")


@pytest.mark.parametrize("count", ["0", "-1", "many", "1.5", "²"])
def test_counts_are_whole_numbers(count: str, config: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["topics", "create", "--config", config, f"--partitions={count}"])
    assert ended.value.code == ExitCode.CONFIGURATION
    assert "should be a whole number of at least 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flag", "output"),
    [
        ("--rate=0", "above 0"),
        ("--rate=fast", "a number"),
        ("--missing=1", "in [0, 1)"),
        ("--missing=nan", "a number"),
        ("--limit=0", "a whole number of at least 1"),
        ("--partition=-1", "a whole number of at least 0"),
        ("--format=csv", "invalid choice"),
    ],
)
def test_numbers_out_of_their_range_are_told(
    flag: str, output: str, config: str, capsys: Capture
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["produce", "--config", config, "x.jsonl", flag])
    assert ended.value.code == ExitCode.CONFIGURATION
    assert output in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (["x.jsonl"], "there is no file x.jsonl"),
        (["x.csv"], "give --format"),
        (["-"], "give --format"),
        (["-", "--format", "jsonl", "--repeat", "2"], "can be read only once"),
    ],
)
def test_a_file_that_cannot_be_produced_ends_with_2(
    arguments: list[str], output: str, config: str, capsys: Capture
) -> None:
    assert main(["produce", "--config", config, *arguments]) == ExitCode.CONFIGURATION
    assert output in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--timeout=0", "--timeout=soon", "--count=0", "--top=-1"])
def test_watch_takes_numbers_above_zero(flag: str, config: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["watch", "--config", config, flag])
    assert ended.value.code == ExitCode.CONFIGURATION
    assert "should be a " in capsys.readouterr().err


def test_the_program_is_named_after_itself() -> None:
    assert parser().prog == "stream-fs"


def test_the_version_may_be_asked_for_as_everywhere(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"stream-fs {version('stream-fs')}\n"


@pytest.mark.parametrize(
    ("missing", "core"),
    [(None, "compiled"), ("it was not built", "numpy (of the compiled one: it was not built)")],
)
def test_version(
    missing: str | None, core: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "why_not_compiled", lambda: missing)
    assert main(["version"]) == ExitCode.OK
    assert capsys.readouterr().out == f"stream-fs {version('stream-fs')}\ncore: {core}\n"


def test_the_version_fails_where_the_core_that_is_demanded_is_not_there(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "why_not_compiled", lambda: "it was not built")
    monkeypatch.setenv("STREAM_FS_CORE", "compiled")
    assert main(["version"]) == ExitCode.CONFIGURATION
    said = capsys.readouterr()
    assert said.out == ""
    assert "but it was not built" in said.err


# --- configuration --------------------------------------------------------------------------------


def test_the_example_passes_the_check(tmp_path: Path, capsys: Capture) -> None:
    assert main(["config", "example"]) == ExitCode.OK
    path = tmp_path / "example.toml"
    path.write_text(capsys.readouterr().out)
    assert main(["config", "check", "--config", str(path)]) == ExitCode.OK
    assert capsys.readouterr().out == "the configuration is valid\n"


def test_what_is_shown_passes_the_check(config: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["config", "show", "--config", config, "--set", "chunk.records=7"]) == ExitCode.OK
    out = capsys.readouterr().out
    assert "records = 7\n" in out
    (tmp_path / "shown.toml").write_text(out)
    assert main(["config", "check", "--config", str(tmp_path / "shown.toml")]) == ExitCode.OK


def test_the_file_may_be_named_by_the_environment(
    config: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("STREAM_FS_CONFIG", config)
    monkeypatch.setenv("STREAM_FS_CHUNK__RECORDS", "9")
    assert main(["config", "show"]) == ExitCode.OK
    assert "records = 9\n" in capsys.readouterr().out


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_without_a_configuration_every_command_ends_with_2(
    command: list[str], capsys: Capture
) -> None:
    assert main(command) == ExitCode.CONFIGURATION
    assert "--config: is missing, and STREAM_FS_CONFIG is not set" in capsys.readouterr().err


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_every_problem_is_told_on_standard_error(
    command: list[str], config: str, capsys: Capture
) -> None:
    flags = ["--set", "chunk.records=0", "--set", "log.level=loud"]
    assert main([*command, "--config", config, *flags]) == ExitCode.CONFIGURATION
    out, err = capsys.readouterr()
    assert out == ""
    first, *problems = err.splitlines()
    assert first == "stream-fs: the configuration is invalid:"
    assert [problem.split(":")[0] for problem in problems] == ["  chunk.records", "  log.level"]


def test_secrets_are_not_shown(config: str, capsys: Capture) -> None:
    secret = ["--set", "kafka.properties.sasl.password=hunter2"]
    assert main(["config", "show", "--config", config, *secret]) == ExitCode.OK
    assert main(["config", "check", "--config", config, *secret, "--set", "log.level=x"]) == 2
    out, err = capsys.readouterr()
    assert '"sasl.password" = "<redacted>"' in out
    assert "hunter2" not in out + err


# --- running --------------------------------------------------------------------------------------


@pytest.fixture
def service(
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[Callable[[Configuration], ExitCode]], None]:
    """Put something else in place of the service."""

    def put(run: Callable[[Configuration], ExitCode]) -> None:
        module = ModuleType("stream_fs.service.run")
        module.run = lambda configuration, _: run(configuration)  # type: ignore[attr-defined]  # a stand-in
        monkeypatch.setitem(sys.modules, "stream_fs.service.run", module)

    return put


@pytest.fixture
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


Put = Callable[[Callable[[Configuration], ExitCode]], None]


def failing(error: Exception) -> Callable[[Configuration], ExitCode]:
    def run(_: Configuration) -> ExitCode:
        raise error

    return run


@pytest.mark.parametrize("code", [ExitCode.OK, ExitCode.PROBLEM])
def test_run_ends_as_the_service_does(service: Put, config: str, code: ExitCode) -> None:
    seen: list[Configuration] = []

    def run(configuration: Configuration) -> ExitCode:
        seen.append(configuration)
        return code

    service(run)
    assert main(["run", "--config", config]) == code
    assert seen[0].stream.name == "digits"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidConfiguration(["service.port: taken"]), 2),
        (errors.OffsetGone("offset 5 is gone"), 3),
        (errors.CorruptSnapshot("torn"), 3),
        (errors.FatalError("no broker; check kafka.bootstrap"), 4),
        (errors.StreamFsError("something else"), 1),
        (RuntimeError("a bug"), 1),
    ],
)
def test_an_error_is_one_message_without_a_traceback(
    service: Put, config: str, capsys: Capture, error: Exception, code: int
) -> None:
    service(failing(error))
    assert main(["run", "--config", config]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("stream-fs: ")
    assert str(error) in err
    assert "Traceback" not in err


def test_a_want_of_memory_is_not_called_a_bug(service: Put, config: str, capsys: Capture) -> None:
    service(failing(MemoryError()))
    assert main(["run", "--config", config]) == ExitCode.PROBLEM
    err = capsys.readouterr().err
    assert err.startswith("stream-fs: out of memory")
    assert "a bug in stream-fs" not in err


def test_debug_shows_the_traceback_but_no_secret(
    service: Put, config: str, capsys: Capture
) -> None:
    service(failing(RuntimeError("a bug with hunter2")))
    secret = ["--set", "kafka.properties.sasl.password=hunter2"]
    assert main(["run", "--config", config, "--debug", *secret]) == ExitCode.PROBLEM
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert "a bug with <redacted>" in err
    assert "hunter2" not in err


@pytest.mark.usefixtures("logging_as_before")
def test_the_end_is_in_the_log_where_it_is_json(service: Put, config: str, capsys: Capture) -> None:
    def run(configuration: Configuration) -> ExitCode:
        set_up("json", "info", stream=configuration.stream.name)
        raise errors.OffsetGone("offset 5 is gone")

    service(run)
    assert main(["run", "--config", config, "--set", "log.format=json"]) == ExitCode.REFUSED
    (line,) = capsys.readouterr().err.splitlines()
    assert '"level": "error", "event": "offset 5 is gone"' in line


def test_an_interrupted_command_ends_as_shells_expect(service: Put, config: str) -> None:
    def run(_: Configuration) -> ExitCode:
        raise KeyboardInterrupt

    service(run)
    assert main(["run", "--config", config]) == 130


# --- topics ---------------------------------------------------------------------------------------


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch, states: MemoryBroker) -> Existing:
    """The topics on the broker."""
    existing = Existing()
    monkeypatch.setattr(topics, "Topics", lambda _: existing)
    monkeypatch.setattr(
        topics, "kafka_transport", lambda _: MemoryTransport(states, "digits", STATES)
    )
    return existing


@pytest.fixture
def states() -> MemoryBroker:
    """What is in the state topic."""
    made = MemoryBroker()
    made.create("digits.state", 9)
    return made


def test_topics_are_made_and_then_as_they_should_be(
    broker: Existing, config: str, capsys: Capture
) -> None:
    broker.found["digits"] = (4, {"cleanup.policy": "delete"})
    assert main(["topics", "check", "--config", config]) == ExitCode.PROBLEM
    assert "topic digits.state does not exist" in capsys.readouterr().out
    assert main(["topics", "create", "--config", config, "--partitions", "9"]) == ExitCode.OK
    assert capsys.readouterr().out.splitlines() == [
        "digits: exists",
        "digits.state: created, 4 partitions",
        "digits.rankings: created, 1 partition",
        "digits.dead-letters: created, 1 partition",
    ]
    assert main(["topics", "check", "--config", config]) == ExitCode.OK
    assert capsys.readouterr().out == "the topics are valid\n"


def test_the_state_gets_the_partitions_that_the_input_has_got(
    broker: Existing, config: str, capsys: Capture
) -> None:
    assert main(["topics", "create", "--config", config, "--partitions", "2"]) == ExitCode.OK
    broker.found["digits"] = (4, broker.found["digits"][1])
    assert main(["topics", "check", "--config", config]) == ExitCode.PROBLEM
    capsys.readouterr()
    assert main(["topics", "create", "--config", config]) == ExitCode.OK
    assert capsys.readouterr().out.splitlines() == [
        "digits: exists",
        "digits.state: extended, 4 partitions",
        "digits.rankings: exists",
        "digits.dead-letters: exists",
    ]
    assert main(["topics", "check", "--config", config]) == ExitCode.OK


@pytest.mark.usefixtures("broker")
def test_the_state_of_another_stream_in_the_same_group_is_named(
    states: MemoryBroker, config: str, capsys: Capture
) -> None:
    assert main(["topics", "create", "--config", config, "--partitions", "2"]) == ExitCode.OK
    blue = Owner("blue", "digits")
    progress = Progress(
        chunk=1,
        from_offset=0,
        next_offset=20,
        snapshots=(SnapshotPlace(0, 1, 0),),
        digest=None,
        fingerprint="",
        owner=blue,
    )
    key = StateKeys(blue, "digits", 1).progress
    states.produce("digits.state", encode_progress(progress), key=key, partition=1)
    capsys.readouterr()
    assert main(["topics", "check", "--config", config]) == ExitCode.PROBLEM
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(
        "digits/1 has no chunk of stream 'digits' in group 'digits', but a state of"
    )


def test_an_input_topic_that_does_not_exist_is_made_only_on_request(
    broker: Existing, config: str, capsys: Capture
) -> None:
    """Its name may be mistyped, and one partition is seldom what a stream needs."""
    assert main(["topics", "create", "--config", config]) == ExitCode.CONFIGURATION
    output = capsys.readouterr().err
    assert "stream.topics: digits does not exist" in output
    assert "--partitions N" in output
    assert broker.found == {}, "nothing is half-made"


@pytest.mark.usefixtures("broker")
def test_a_missing_input_topic_names_the_way_out(config: str, capsys: Capture) -> None:
    assert main(["topics", "check", "--config", config]) == ExitCode.PROBLEM
    said = {line.split()[1]: line for line in capsys.readouterr().out.splitlines()}
    assert "check stream.topics" in said["digits"]
    assert "`stream-fs topics create --partitions N`" in said["digits"]
    assert "create it with `stream-fs topics create`" in said["digits.state"]


def test_an_input_topic_that_does_not_exist_is_made_as_told(broker: Existing, config: str) -> None:
    assert main(["topics", "create", "--config", config, "--partitions", "9"]) == ExitCode.OK
    assert broker.found["digits"][0] == broker.found["digits.state"][0] == 9


def test_a_broker_that_cannot_be_reached_ends_with_4(
    monkeypatch: pytest.MonkeyPatch, config: str, capsys: Capture
) -> None:
    def unreachable(_: object) -> Existing:
        raise errors.FatalError("no answer from kafka.bootstrap=localhost:9092")

    monkeypatch.setattr(topics, "Topics", unreachable)
    assert main(["topics", "check", "--config", config]) == ExitCode.BROKER
    assert "kafka.bootstrap=localhost:9092" in capsys.readouterr().err


# --- as a process ---------------------------------------------------------------------------------

CHATTY = """
import logging, sys
from stream_fs.cli.commands import topics
from stream_fs.cli.main import main
from stream_fs.errors import FatalError

def unreachable(_):
    logging.getLogger("stream_fs.kafka").warning("FAIL: connect")
    raise FatalError("no answer")

topics.Topics = unreachable
sys.exit(main(sys.argv[1:]))
"""


def test_what_the_client_logs_does_not_drown_the_message(config: str) -> None:
    """In a process of its own: pytest listens to every logger, and so changes what is written."""
    ended = subprocess.run(
        [sys.executable, "-c", CHATTY, "topics", "check", "--config", config],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (ExitCode.BROKER, "")
    assert ended.stderr == "stream-fs: no answer\n"


def test_the_package_can_be_run(capsys: Capture) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "stream_fs.cli", "version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert main(["version"]) == ExitCode.OK
    assert ended.stdout == capsys.readouterr().out


@pytest.mark.parametrize("command", [["config", "example"], ["version"]], ids=" ".join)
def test_a_reader_that_has_seen_enough_is_no_error(command: list[str]) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    with open(theirs, "wb") as gone:  # noqa: PTH123  # a pipe has no path
        ended = process(command, gone)
    assert (ended.returncode, ended.stderr) == (ExitCode.OK, b"")


@pytest.mark.parametrize("command", [["config", "example"], ["version"]], ids=" ".join)
def test_what_is_printed_and_finds_no_room_is_told_of(command: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        ended = process(command, full)
    output = b"stream-fs: output: No space left on device\n"
    assert (ended.returncode, ended.stderr) == (ExitCode.STORAGE, output)


def process(command: list[str], output: BinaryIO) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "stream_fs.cli", *command],
        stdout=output,
        stderr=subprocess.PIPE,
        check=False,
    )
