"""The demo, as a new user runs it: on a broker, without one, and interrupted."""

from __future__ import annotations

import fcntl
import json
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
from stream_fs.broker.toolchain import Toolchain
from tests.integration.service.services import NOWHERE
from tests.support.processes import mentioning, wait_until
from tests.support.topics import TIMEOUT_SECONDS

ROOT = Path(__file__).parents[2]
OF_ITS_OWN = {BOOTSTRAP_VARIABLE: ""}
"""A broker that the demo starts by itself."""
FOREIGN = {
    "STREAM_FS_KAFKA__BOOTSTRAP": NOWHERE,
    "STREAM_FS_KAFKA__PROPERTIES__SECURITY_PROTOCOL": "SASL_SSL",
    "STREAM_FS_STREAM__TOPICS": '["orders"]',
    "STREAM_FS_CHUNK__RECORDS": "77",
}
"""Settings of a service of the user's, with which the demo has nothing to do."""


class Demo:
    """A demo that runs, and what it has printed."""

    def __init__(self, process: subprocess.Popen[bytes], output: Path) -> None:
        self.process = process
        self._output = output

    @property
    def output(self) -> str:
        return self._output.read_text()

    def wait_for(self, what: Callable[[], bool], name: str) -> None:
        def there() -> bool:
            assert self.process.poll() is None or what(), self.output
            return what()

        wait_until(there, f"{name}; its output: {self.output}")


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
            process_group=0,
        )
    try:
        yield Demo(process, output)
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: not mentioning(str(scratch)), "every process is gone")
    wait_until(lambda: not list(scratch.iterdir()), "every file is gone")
    jars = Toolchain.found(os.environ).jars
    if (lock := jars.with_name(f"{jars.name}.lock")).exists():
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def stream_at(address: str) -> str:
    """The name of the demo's stream, with which its topics and its group begin."""
    with urllib.request.urlopen(address.rstrip("/") + "/api/status", timeout=30) as answer:
        (topic,) = {partition["topic"] for partition in json.load(answer)["partitions"]}
    return str(topic)


def topics_of(stream: str, broker: Broker) -> list[str]:
    there = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=30).topics
    return [name for name in there if name.startswith(stream)]


def groups_of(stream: str, broker: Broker) -> list[str]:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    there = admin.list_consumer_groups().result(TIMEOUT_SECONDS)
    assert there.errors == []
    return [group.group_id for group in there.valid if group.group_id.startswith(stream)]


def assert_summed_up(said: str) -> None:
    """Whether the summary says what it should, and nothing that cannot be."""
    assert (
        "17,700 records in 59 chunks of 300 gave 59 rankings, each published once, without" in said
    )
    (rate,) = re.findall(r"^([\d,]+) records/s at full speed$", said, re.M)
    assert int(rate.replace(",", "")) > 0
    (counts,) = re.findall(
        r"(\d+) of the (\d+) selected features are useless ones \((\d+)%; (\d+)% of all", said
    )
    useless, chosen, share, share_of_all = map(int, counts)
    assert useless <= 2
    assert share == round(100 * useless / chosen) < share_of_all < 50
    figures = re.findall(r"(all|the) (\d+) (?:features|selected) +(\d\.\d\d) +(\d\.\d\d)", said)
    (_, everything, raw, scaled), (_, some, chosen_raw, chosen_scaled) = figures
    assert chosen == int(some) < int(everything)
    assert 0 <= float(raw) + 0.3 < float(chosen_raw) <= 1
    assert 0 <= float(scaled) - 0.1 < float(chosen_scaled) <= 1


def test_from_the_first_ranking_to_the_summary(tmp_path: Path, broker: Broker) -> None:
    given = {**FOREIGN, BOOTSTRAP_VARIABLE: broker.bootstrap}
    with demo(tmp_path, "--keep", **given) as running:
        running.wait_for(lambda: "status page: " in running.output, "the service is ready")
        running.wait_for(lambda: "ranking 1 after 300 records" in running.output, "a ranking")
        running.wait_for(lambda: "still running" in running.output, "the summary")
        assert_summed_up(running.output)
        address = re.findall(r"still running: (\S+)", running.output)[0]
        with urllib.request.urlopen(address.rstrip("/") + "/readyz", timeout=30) as answer:
            assert answer.status == 200
        stream = stream_at(address)
        assert stream.startswith("demo-")
        assert topics_of(stream, broker) != []
        assert groups_of(stream, broker) == [stream]
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(120) == 0, running.output
    assert topics_of(stream, broker) == []
    assert groups_of(stream, broker) == []


def test_on_a_broker_of_its_own_to_the_end(tmp_path: Path) -> None:
    with demo(tmp_path, **OF_ITS_OWN) as running:
        assert running.process.wait(300) == 0, running.output
        assert_summed_up(running.output)
        assert running.output.endswith("stopping the service …\n")


def test_an_interrupt_in_the_middle_of_the_stream_leaves_nothing(tmp_path: Path) -> None:
    with demo(tmp_path, **OF_ITS_OWN) as running:
        interrupt_in_the_stream(running)


def test_an_interrupt_leaves_nothing_on_an_existing_broker(tmp_path: Path, broker: Broker) -> None:
    with demo(tmp_path, **{BOOTSTRAP_VARIABLE: broker.bootstrap}) as running:
        stream = interrupt_in_the_stream(running)
    assert topics_of(stream, broker) == []
    assert groups_of(stream, broker) == []


def interrupt_in_the_stream(running: Demo) -> str:
    """Ctrl-C as a terminal does it, to everything in the foreground; the name of the stream."""
    running.wait_for(lambda: "ranking 1 after 300 records" in running.output, "a ranking")
    (address,) = re.findall(r"status page: (\S+)", running.output)
    stream = stream_at(address)
    os.killpg(running.process.pid, signal.SIGINT)
    assert running.process.wait(300) == 130, running.output
    assert "Traceback" not in running.output
    return stream


def test_without_a_broker_the_demo_runs_on_files(tmp_path: Path) -> None:
    nothing = tmp_path / "bin"
    nothing.mkdir()
    away = {
        "PATH": str(nothing),
        "JAVA_HOME": "",
        BOOTSTRAP_VARIABLE: "",
        "DOCKER_HOST": f"unix://{tmp_path}/none.sock",
    }
    with demo(tmp_path, "--keep", **away) as running:
        assert running.process.wait(300) == 0, running.output
        assert "there is no Kafka broker, and none can be started" in running.output
        assert "default-jre-headless" in running.output
        assert "29 rankings, each published once, without a gap" in running.output
        assert "0 of the" in running.output
        assert running.output.endswith("without a broker nothing can be kept running\n")


def test_an_interrupt_during_the_start_of_the_broker_leaves_nothing(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    with demo(tmp_path, **OF_ITS_OWN) as running:
        running.wait_for(
            lambda: any("kafka" in line for line in mentioning(str(scratch)).values()),
            "the broker is being started",
        )
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(60) == 130, running.output
