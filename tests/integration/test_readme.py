"""Every command and every example of the README, executed in its order against a real broker."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from stream_fs.broker import Broker
from tests.deploy.wheels import built, installed

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INSTALL = "pip install ."
RUN = "stream-fs run "
TOPICS = ("digits", "digits.state", "digits.rankings", "digits.dead-letters")


def blocks(text: str) -> list[tuple[str, str]]:
    return [(kind, body) for kind, body in BLOCK.findall(text)]


README = (ROOT / "README.md").read_text()


class Reader:
    """Runs the commands of the README in an empty directory."""

    def __init__(self, directory: Path, bootstrap: str) -> None:
        self.directory = directory
        self.bootstrap = bootstrap
        self.service: subprocess.Popen[str] | None = None
        self.programs: Path | None = None
        """Of an environment with what was installed, and no trace of this checkout."""
        self.done: list[str] = []
        self.environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith("PYTHON")},
            "STREAM_FS_KAFKA__BOOTSTRAP": bootstrap,
            "STREAM_FS_SERVICE__PORT": "0",
        }

    def types(self, command: str) -> None:
        if command.startswith("make "):
            # `make demo` is the demo, which has tests of its own; `make test` runs this.
            subprocess.run(["make", "--dry-run", *command.split()[1:]], cwd=ROOT, check=True)
        elif command == INSTALL:
            clone = self.directory / "clone"
            clone.mkdir()
            self.programs = installed(built(clone), self.directory / "environment")
        elif command.startswith(RUN):
            self.service = subprocess.Popen(
                self.program(command), cwd=self.directory, env=self.environment, text=True
            )
        else:
            self.runs(command)
        self.done.append(command)

    def runs(self, command: str) -> None:
        line, _, target = command.partition(" > ")
        ended = subprocess.run(
            self.program(line),
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, f"{command}: {ended.stderr}"
        if target:
            (self.directory / target).write_text(ended.stdout)

    def program(self, command: str) -> list[str]:
        name, *arguments = command.split()
        assert name == "stream-fs", f"the README has a command that is not ours: {command}"
        return [str(self.installed(name)), *arguments]

    def installed(self, name: str) -> Path:
        assert self.programs is not None, f"the README has not said how to get {name}"
        return self.programs / name

    def executes(self, code: str) -> None:
        script = self.directory / "example.py"
        script.write_text(code.replace("localhost:9092", self.bootstrap))
        ended = subprocess.run(
            [self.installed("python"), "-W", "error", str(script)],
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert ended.returncode == 0, f"{code}\n{ended.stderr}"

    def stops(self) -> None:
        if self.service is not None:
            self.service.send_signal(signal.SIGTERM)
            assert self.service.wait(60) == 0
            self.service = None


@pytest.fixture
def reader(tmp_path: Path, broker: Broker) -> Iterator[Reader]:
    reader = Reader(tmp_path, broker.bootstrap)
    yield reader
    if reader.service is not None:
        reader.service.kill()
        reader.service.wait()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for gone in admin.delete_topics([*TOPICS]).values():
        gone.exception()  # waits; a test that failed early has not made all of them


def test_everything_in_the_readme_works(reader: Reader) -> None:
    for kind, body in blocks(README):
        if kind == "python":
            reader.executes(body)
            continue
        for line in body.splitlines():
            assert line.startswith("$ "), f"not a command: {line}"
            if line.startswith("$ stream-fs checkpoint"):
                reader.stops()
            reader.types(line.removeprefix("$ "))
    assert any(command.startswith(RUN) for command in reader.done)
    for name in ("produce", "watch", "replay", "checkpoint export", "checkpoint reset"):
        assert any(command.startswith(f"stream-fs {name} ") for command in reader.done), name


def test_every_target_named_in_the_readme_exists() -> None:
    named = set(re.findall(r"`make ([a-z-]+)`", README))
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert named
    assert named <= {line.split()[0] for line in listed.stdout.splitlines()}


def test_blocks_are_found_with_their_kind() -> None:
    assert blocks("```python\na\n```\n\n```console\n$ b\n```\n") == [
        ("python", "a\n"),
        ("console", "$ b\n"),
    ]
