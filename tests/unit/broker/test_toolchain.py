"""Finding Java and fetching the jars of Kafka once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from stream_fs.broker import BrokerUnavailable
from stream_fs.broker.toolchain import Toolchain


def fake_tool(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_an_old_java_is_reported(tmp_path: Path) -> None:
    java = fake_tool(tmp_path / "java", "echo 'openjdk version \"11.0.2\" 2019' >&2")
    tools = Toolchain(java=java, maven="mvn", jars=tmp_path / "jars")
    (sentence,) = tools.missing()
    assert "is Java 11" in sentence


def test_the_jars_are_fetched_once_and_kept(tmp_path: Path) -> None:
    maven = fake_tool(
        tmp_path / "mvn",
        f"""echo fetched >> {tmp_path}/calls
        sleep 0.3
        for argument in "$@"; do
            case $argument in -DoutputDirectory=*) touch "${{argument#*=}}/kafka.jar";; esac
        done""",
    )
    java = fake_tool(tmp_path / "java", "echo 'openjdk version \"21\"' >&2")
    tools = Toolchain(java=java, maven=maven, jars=tmp_path / "cache" / "kafka")
    together = [threading.Thread(target=tools.fetch) for _ in range(3)]
    for thread in together:
        thread.start()
    for thread in together:
        thread.join()
    assert (tmp_path / "calls").read_text() == "fetched\n"

    without_maven = Toolchain(java=java, maven=None, jars=tools.jars)
    assert without_maven.missing() == []
    assert (without_maven.fetch() / "kafka.jar").exists()


def test_a_failed_fetch_leaves_no_incomplete_cache(tmp_path: Path) -> None:
    maven = fake_tool(tmp_path / "mvn", "echo 'cannot resolve'; exit 1")
    tools = Toolchain(java="java", maven=maven, jars=tmp_path / "cache" / "kafka")
    with pytest.raises(BrokerUnavailable, match="cannot resolve"):
        tools.fetch()
    assert [path.name for path in tools.jars.parent.iterdir() if path.is_dir()] == []
