"""A guarded command ends with the process that started it, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stream_fs.broker.guarded_process import GuardedCommand, guarded_directory
from tests.support.processes import mentioning, wait_until

ROOT = Path(__file__).parents[2]
PARENT = """
import os, signal, sys, time
from pathlib import Path
from stream_fs.broker.guarded_process import GuardedCommand

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have ignored it
scratch = Path(sys.argv[1])
sleeper = [sys.executable, "-c", "import time; time.sleep(1000)", str(scratch)]
command = GuardedCommand(sleeper, output=scratch / "log", scratch=scratch)
if os.fork() == 0:  # inherits the pipe to the guard, and outlives its parent
    time.sleep(1000)
time.sleep(1000)
"""


def sleepers(scratch: Path) -> set[int]:
    """The guard and its command, without their parent."""
    return {pid for pid, command in mentioning(str(scratch)).items() if "fork" not in command}


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_when_the_parent_ends(tmp_path: Path, how: signal.Signals) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = [sys.executable, "-c", PARENT, str(scratch)]
    with subprocess.Popen(
        command, start_new_session=True, stderr=subprocess.DEVNULL, cwd=ROOT
    ) as parent:
        try:
            wait_until(lambda: len(sleepers(scratch)) == 2, "the guard and its command run")
            parent.send_signal(how)
            parent.wait()
            wait_until(lambda: not sleepers(scratch), "the guard and its command are gone")
            wait_until(lambda: not scratch.exists(), "the scratch directory is gone")
        finally:
            os.killpg(parent.pid, signal.SIGKILL)  # the forked process


def test_a_directory_is_removed_with_its_owner(tmp_path: Path) -> None:
    with guarded_directory("closed-") as directory:
        assert directory.is_dir()
    assert not directory.exists()

    program = (
        "import time; from stream_fs.broker.guarded_process import guarded_directory\n"
        "with guarded_directory('killed-') as d: print(d, flush=True); time.sleep(1000)"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", program], env=environment, cwd=ROOT, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout is not None
        killed = Path(owner.stdout.readline().decode().strip())
        assert killed.parent == tmp_path
        assert killed.is_dir()
        owner.kill()
    wait_until(lambda: not killed.exists(), "the directory is gone")
    wait_until(lambda: not mentioning(str(killed)), "its guard is gone")


def test_the_command_ends_with_its_guard(tmp_path: Path) -> None:
    sleeper = [sys.executable, "-c", "import time; time.sleep(1000)", str(tmp_path)]
    command = GuardedCommand(sleeper, output=tmp_path / "log", scratch=tmp_path)
    wait_until(lambda: len(mentioning(str(tmp_path))) == 2, "the guard and its command run")
    guard = next(pid for pid, line in mentioning(str(tmp_path)).items() if "guard.py" in line)
    os.kill(guard, signal.SIGKILL)
    assert command.wait() == -signal.SIGKILL
    wait_until(lambda: not mentioning(str(tmp_path)), "the command is gone")


def test_stop_terminates_the_command_and_kill_does_not_wait(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    terminating = (
        "import pathlib, signal, sys, time;"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7));"
        f"pathlib.Path({str(ready)!r}).touch(); time.sleep(1000)"
    )
    statuses = []
    for end in (GuardedCommand.stop, GuardedCommand.kill):
        ready.unlink(missing_ok=True)
        command = GuardedCommand(
            [sys.executable, "-c", terminating], output=tmp_path / "log", scratch=tmp_path
        )
        wait_until(ready.exists, "the command runs")
        end(command)
        assert not command.running()
        statuses.append(command.wait())
    assert statuses == [7, 128 + signal.SIGKILL]
    assert tmp_path.exists()
