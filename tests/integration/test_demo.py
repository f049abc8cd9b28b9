"""The demo, as a new user runs it: on a broker, without one, and broken off."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient

from stream_fs.broker import BOOTSTRAP_VARIABLE, Broker
from tests.integration.processes import mentioning, wait_until

ROOT = Path(__file__).parents[2]


class Demo:
    """A demo that runs, and what it has printed."""

    def __init__(self, process: subprocess.Popen[bytes], output: Path) -> None:
        self.process = process
        self._output = output

    @property
    def said(self) -> str:
        return self._output.read_text()

    def wait_for(self, what: Callable[[], bool], name: str) -> None:
        def there() -> bool:
            assert self.process.poll() is None or what(), self.said
            return what()

        wait_until(there, f"{name}; it said: {self.said}")


@contextmanager
def demo(directory: Path, *arguments: str, **environment: str) -> Iterator[Demo]:
    """Run the demo; afterwards nothing of it is there any more."""
    scratch = directory / "scratch"
    scratch.mkdir()
    output = directory / "output"
    # A shell that runs this in the background may ignore SIGINT, and hand that down.
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from stream_fs.cli.main import main; sys.exit(main())"
    )
    settings = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(scratch), **environment}
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", program, "demo", *arguments],
            env={name: value for name, value in settings.items() if value},
            cwd=directory,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        yield Demo(process, output)
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: not mentioning(str(scratch)), "every process is gone")
    wait_until(lambda: not list(scratch.iterdir()), "every file is gone")


def test_from_the_first_ranking_to_the_summary(tmp_path: Path, broker: Broker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    with demo(tmp_path, "--keep", **{BOOTSTRAP_VARIABLE: broker.bootstrap}) as running:
        running.wait_for(lambda: "status page: " in running.said, "the service is ready")
        running.wait_for(lambda: "ranking 1 after 300 records" in running.said, "a ranking")
        running.wait_for(lambda: "still running" in running.said, "the summary")
        said = running.said
        assert "59 rankings, each published once, without a gap" in said
        found = re.search(r"(\d+) of the (\d+) chosen features are useless", said)
        assert found is not None
        assert int(found[1]) <= 2
        figures = re.findall(r"(?:all \d+ features|the \d+ chosen) +(\d\.\d\d) +(\d\.\d\d)", said)
        (raw, scaled), (chosen_raw, chosen_scaled) = [tuple(map(float, row)) for row in figures]
        assert chosen_raw > raw + 0.3
        assert chosen_scaled > scaled - 0.1
        assert re.search(r"[\d,]+ records/s when they came without a pause", said)
        address = re.findall(r"still running: (\S+)", said)[0]
        with urllib.request.urlopen(address.rstrip("/") + "/readyz", timeout=30) as answer:
            assert answer.status == 200
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(120) == 0, running.said
    # Others use the same broker; the demo's topics have its name.
    assert [name for name in admin.list_topics(timeout=30).topics if "demo-" in name] == []


def test_without_a_broker_it_says_so_and_runs_on_files(tmp_path: Path) -> None:
    nothing = tmp_path / "bin"
    nothing.mkdir()
    away = {
        "PATH": str(nothing),
        "JAVA_HOME": "",
        BOOTSTRAP_VARIABLE: "",
        "DOCKER_HOST": f"unix://{tmp_path}/none.sock",
    }
    with demo(tmp_path, **away) as running:
        assert running.process.wait(300) == 0, running.said
        assert "there is no Kafka broker to be had here" in running.said
        assert "openjdk-17" in running.said
        assert "29 rankings, each published once, without a gap" in running.said
        assert "0 of the" in running.said


def test_broken_off_while_the_broker_starts(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    with demo(tmp_path, **{BOOTSTRAP_VARIABLE: ""}) as running:
        running.wait_for(
            lambda: any("kafka" in line for line in mentioning(str(scratch)).values()),
            "the broker is being started",
        )
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(60) == 130, running.said
