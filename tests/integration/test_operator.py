"""The steps of a new operator, from an empty directory to alerts and back, on a real broker."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.deploy.expressions import names
from tests.deploy.files import RECORDED, RULE_FILES, RULES
from tests.integration.prometheus import Prometheus, running_prometheus
from tests.integration.service.services import ROOT, Service
from tests.support.processes import wait_until
from tests.support.topics import TIMEOUT_SECONDS, Topics

CHUNK = 200
CHUNKS = 3
MADE = ("", ".state", ".rankings", ".dead-letters")


class Operator:
    """Runs commands in a directory of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "stream-fs.toml"
        self._environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("STREAM_FS_")},
            "PYTHONPATH": str(ROOT),
        }

    def types(self, *words: str) -> str:
        """What a command prints; it has to succeed."""
        ended = subprocess.run(
            [sys.executable, "-m", "stream_fs.cli", *words],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=2 * TIMEOUT_SECONDS,
            check=False,
        )
        assert ended.returncode == 0, f"{words}: {ended.stdout}{ended.stderr}"
        return ended.stdout

    def edits(self, text: str, *changes: tuple[str, str]) -> None:
        """Write a file, with changes to lines that must be there."""
        for line, instead in changes:
            assert text.count(f"\n{line}\n") == 1, f"{line!r} is not in the example"
            text = text.replace(f"\n{line}\n", f"\n{instead}\n")
        self.file.write_text(text, encoding="utf-8")


@pytest.fixture
def stream(topics: Topics) -> Iterator[str]:
    """The name of a stream that has no topics yet."""
    name = topics.unique("operated")
    yield name
    for deleted in topics.admin.delete_topics([f"{name}{end}" for end in MADE]).values():
        deleted.result(TIMEOUT_SECONDS)


@pytest.fixture
def services() -> Iterator[list[Service]]:
    """Those that a test has started; they are ended with it."""
    started: list[Service] = []
    yield started
    for one in started:
        one.kill()


def test_from_an_example_to_alerts_and_back(
    stream: str, topics: Topics, tmp_path: Path, services: list[Service]
) -> None:
    operator = Operator(tmp_path)
    file = ("--config", operator.file.name)
    operator.edits(
        operator.types("config", "example"),
        ('name = "digits"', f'name = "{stream}"'),
        ('topics = ["digits"]', f'topics = ["{stream}"]'),
        ('bootstrap = "localhost:9092"', f'bootstrap = "{topics.bootstrap}"'),
        ("# records = 500", f"records = {CHUNK}"),
        ("# port = 9108", "port = 0"),
    )
    assert operator.types("config", "check", *file) == "the configuration is valid\n"
    made = operator.types("topics", "create", *file, "--partitions", "1")
    assert made.splitlines() == [f"{stream}{end}: created, 1 partition" for end in MADE]
    assert operator.types("topics", "check", *file) == "the topics are valid\n"

    rng = np.random.default_rng(0)
    count = CHUNK * CHUNKS
    fourier, pixels = rng.random((count, 76), np.float32), rng.random((count, 240), np.float32)
    np.savez(tmp_path / "data.npz", fourier=fourier, pixels=pixels)
    produced = operator.types("produce", *file, "data.npz", "--missing", "0.2")
    assert f"produced {CHUNK * CHUNKS} records to {stream} " in produced

    service = Service(operator.file)
    services.append(service)
    service.wait_for(service.ready, "it is not ready")
    words = ("--json", "--from-beginning", "--count", str(CHUNKS), "--timeout", "60")
    found = [json.loads(line) for line in operator.types("watch", *file, *words).splitlines()]
    assert [ranking["sequence"] for ranking in found] == list(range(1, CHUNKS + 1))
    assert found[-1]["records"]["total"] == CHUNK * CHUNKS
    assert found[-1]["offsets"]["next"] == CHUNK * CHUNKS

    alerts_evaluate(service, stream, tmp_path)
    service.send(signal.SIGTERM)
    assert service.wait() == 0, service.output
    (line,) = operator.types("checkpoint", "inspect", *file, "--json").splitlines()
    state: dict[str, Any] = json.loads(line)
    assert (state["chunk"], state["next_offset"]) == (CHUNKS, CHUNK * CHUNKS)
    assert state["snapshots"][0]["chunk"] == CHUNKS, "the end has saved the model"


def alerts_evaluate(service: Service, stream: str, folder: Path) -> None:
    """Against the metrics of this service: every rule, and none of the alerts fires."""
    program = shutil.which("prometheus")
    if program is None:  # then at least every series that is asked for is there
        text = service.get("/metrics")[1]
        families = set(re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE))
        for rule in RULES:
            for name in names(rule["expr"]) - RECORDED - {"up"}:
                assert re.sub("_(bucket|sum|count)$", "", name) in families
        return
    (target,) = re.findall(r"listening.* address=http://(\S+)", service.output)
    with running_prometheus(program, folder, target, RULE_FILES) as prometheus:
        chunks = f'stream_fs_chunks_total{{stream="{stream}", outcome="published"}}'
        assert prometheus.value(chunks) == CHUNKS
        assert prometheus.value(f'stream_fs_ready{{stream="{stream}"}}') == 1
        wait_until(lambda: all_evaluated(prometheus), "every rule is evaluated")
        rules = prometheus.rules()
        assert len(rules) == len(RULES)
        assert {
            rule["name"]: rule.get("lastError") for rule in rules if rule["health"] != "ok"
        } == {}
        assert [rule["name"] for rule in rules if rule.get("state") == "firing"] == []
        for rule in RULES:
            prometheus.get("query", query=rule["expr"])
        wait_until(
            lambda: (
                prometheus.value(f'stream_fs:chunks:increase10m{{stream="{stream}"}}') == CHUNKS
            ),
            "the chunks are recorded",
        )
        assert prometheus.value(f'stream_fs:lag_records:sum{{stream="{stream}"}}') == 0


def all_evaluated(prometheus: Prometheus) -> bool:
    return all(rule["health"] != "unknown" for rule in prometheus.rules())
