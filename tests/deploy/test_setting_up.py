"""The first steps of `make`: missing tools are installed, or named."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from stream_fs.broker.toolchain import KAFKA_VERSION
from tests.deploy.files import ROOT


class Machine:
    """A machine with tools that are none; they note how they were called."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._calls = folder / "calls"
        self._calls.touch()
        self.cache = folder / "cache" / "stream-fs"
        self.tool("id", "echo 0")
        self.tool("docker", "exit 1")
        self.tool("java", "echo 'openjdk version \"21.0.2\" 2024' >&2")

    def tool(self, name: str, script: str) -> None:
        place = self._folder / "bin" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(f'#!/bin/sh\necho "{name} $*" >> {self._calls}\n{script}\n')
        place.chmod(0o755)

    def runs(self, *command: str) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": f"{self._folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self._folder),
            "XDG_CACHE_HOME": str(self.cache.parent),
        }
        return subprocess.run(
            ["bash", *command],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def called(self, name: str) -> list[str]:
        calls = self._calls.read_text().splitlines()
        return [call for call in calls if call.split()[0] == name]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_missing_tools_are_installed(machine: Machine, tmp_path: Path) -> None:
    machine.tool("apt-get", f'[ "$1" != install ] || touch {tmp_path}/there')
    ended = machine.runs(".ci/need", "A thing", "things", "test", "-e", f"{tmp_path}/there")
    assert ended.returncode == 0, ended.stderr
    assert machine.called("apt-get")[-1].endswith(" things")


@pytest.mark.parametrize("failing", ["update", "install"])
def test_a_tool_that_cannot_be_installed_is_named(machine: Machine, failing: str) -> None:
    machine.tool("apt-get", f'[ "$1" != {failing} ]')
    ended = machine.runs(".ci/need", "A thing", "things", "false")
    assert ended.returncode == 1
    assert "A thing is missing" in ended.stderr
    assert "Debian package: things" in ended.stderr


@pytest.mark.parametrize(
    ("cached", "wanted"),
    [
        (f"kafka-{KAFKA_VERSION}", False),
        (f"kafka-{KAFKA_VERSION}.partial", True),
        ("kafka-3.9.0", True),
        ("", True),
    ],
)
def test_maven_is_required_unless_kafka_is_cached(
    machine: Machine, cached: str, wanted: bool
) -> None:
    machine.tool("mvn", "")
    (machine.cache / cached).mkdir(parents=True)
    ended = machine.runs(".ci/broker")
    assert ended.returncode == 0, ended.stderr
    assert bool(machine.called("mvn")) is wanted


@pytest.mark.parametrize("target", ["quality", "evaluate"])
def test_without_data_the_sets_inside_scikit_learn_are_measured(target: str) -> None:
    # The tests may have been started by a make that was given DATA.
    clean = {name: text for name, text in os.environ.items() if name not in ("DATA", "MAKEFLAGS")}

    def command(*given: str) -> str:
        dry = ["make", "--dry-run", "--silent", target, *given]
        return subprocess.run(
            dry, cwd=ROOT, env=clean, capture_output=True, text=True, check=True
        ).stdout

    assert "stream_fs.cli evaluate" in command()
    assert "--data" not in command()
    assert "--data some/where " in command("DATA=some/where")
