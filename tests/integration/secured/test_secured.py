"""The service through TLS and SCRAM: what it needs to come in, and what it says when it cannot."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin._acl import AclBindingFilter, AclPermissionType
from confluent_kafka.admin._resource import ResourceType

from stream_fs.broker import BOOTSTRAP_VARIABLE
from tests.integration.secured.guarded import (
    ELSEWHERE,
    EXPIRED,
    GOOD,
    PASSWORD,
    USER,
    WRONG,
    Guarded,
    acl,
    guarded_broker,
)
from tests.integration.service.services import ROOT
from tests.integration.service.stream import chunks
from tests.support.processes import wait_until
from tests.support.topics import TIMEOUT_SECONDS, flush

CONFIGURATION = """
stream = { name = "secured", topics = ["secured"] }
views = [{ name = "a", dimension = 6 }, { name = "b", dimension = 4 }]
selector = { clusters = 2 }
chunk = { records = 15 }
service = { port = 0 }
log = { level = "debug" }
[kafka]
bootstrap = "to be set"
call_timeout = 10
[kafka.properties]
"""
FROM_ENVIRONMENT = '"sasl.password" = { env = "KAFKA_PASSWORD" }\n'
FROM_FILE = '"sasl.password" = { file = "password" }\n'


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(BOOTSTRAP_VARIABLE, raising=False)
        with guarded_broker(tmp_path_factory.mktemp("guarded")) as broker:
            yield broker


class Operator:
    """Somebody with a configuration, whose password comes from the environment or from a file."""

    def __init__(
        self, folder: Path, connection: Mapping[str, str], password: str = PASSWORD
    ) -> None:
        self.password = password
        self._flags = [word for k, v in connection.items() for word in ("--set", f"{k}={v}")]
        self._config = folder / "secured.toml"
        self._config.write_text(CONFIGURATION + FROM_ENVIRONMENT, encoding="utf-8")
        self._log = folder / "service.log"
        self._environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("STREAM_FS_")},
            "KAFKA_PASSWORD": password,
        }

    def keeps_the_password_in_a_file(self) -> None:
        self._config.write_text(CONFIGURATION + FROM_FILE, encoding="utf-8")
        self._config.with_name("password").write_text(f"{self.password}\n", encoding="utf-8")
        del self._environment["KAFKA_PASSWORD"]

    def __call__(self, *words: str) -> tuple[int, str]:
        """Exit code of a command, and what it says; never the password."""
        ended = subprocess.run(
            self._command(*words),
            cwd=ROOT,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        said = ended.stdout + ended.stderr
        assert self.password not in said
        return ended.returncode, said

    def serves(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                self._command("run"), cwd=ROOT, env=self._environment, stderr=log
            )

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8")

    def _command(self, *words: str) -> list[str]:
        program = [sys.executable, "-m", "stream_fs.cli", *words]
        return [*program, "--config", str(self._config), *self._flags]


def published(operator: Operator, count: int) -> list[dict[str, Any]]:
    """So many rankings, as a subscriber gets them over the same connection."""
    words = ("--json", "--from-beginning", "--count", str(count), "--timeout", "60")
    code, said = operator("watch", *words)
    assert code == 0, said + operator.log
    return [json.loads(line) for line in said.splitlines()]


def feed(guarded: Guarded, records: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": guarded.broker.bootstrap})
    for record in records:
        producer.produce("secured", record, partition=0)
    flush(producer)


def one_life(operator: Operator, rankings: int) -> None:
    """Of the service, until so many rankings are published."""
    service = operator.serves()
    try:
        found = published(operator, rankings)
        assert [one["sequence"] for one in found] == list(range(1, rankings + 1))
        wait_until(lambda: f" chunk={rankings} " in operator.log, "the commit")
        service.send_signal(signal.SIGTERM)
        assert service.wait(TIMEOUT_SECONDS) == 0, operator.log
    finally:
        service.kill()
        service.wait()


def test_the_service_runs_through_it(guarded: Guarded, tmp_path: Path) -> None:
    """With the password from the environment, and after a restart from a file."""
    operator = Operator(tmp_path, guarded.connection())
    assert operator("topics", "create", "--partitions", "1") == (
        0,
        "secured: created, 1 partition\nsecured.state: created, 1 partition\n"
        "secured.rankings: created, 1 partition\nsecured.dead-letters: created, 1 partition\n",
    )
    assert operator("topics", "check")[0] == 0
    code, said = operator("config", "show")
    assert code == 0
    assert '"sasl.password" = { env = "KAFKA_PASSWORD" }' in said
    feed(guarded, [*chunks(1), b"bad", *chunks(2)[-15:]])
    one_life(operator, 2)
    operator.keeps_the_password_in_a_file()
    feed(guarded, chunks(3)[-15:])
    one_life(operator, 3)
    code, said = operator("checkpoint", "inspect", "--json")
    assert code == 0, said
    (state,) = (json.loads(line) for line in said.splitlines())
    assert (state["chunk"], state["snapshots"][0]["chunk"]) == (3, 3)
    assert PASSWORD not in operator.log
    assert operator.log.count("snapshot committed") == 2
    code, said = operator("config", "show")
    assert '"sasl.password" = { file = "password" }' in said


REFUSED = {
    "password": (
        GOOD,
        {},
        WRONG,
        ["Authentication failed", "invalid credentials", "sasl.password"],
    ),
    "user": (
        GOOD,
        {"kafka.properties.sasl.username": "nobody"},
        PASSWORD,
        ["Authentication failed", "sasl.username"],
    ),
    "mechanism": (
        GOOD,
        {"kafka.properties.sasl.mechanism": "SCRAM-SHA-256"},
        PASSWORD,
        ["Unsupported SASL mechanism", "supported mechanisms: SCRAM-SHA-512", "sasl.mechanism"],
    ),
    "authority": (
        GOOD,
        {"kafka.properties.ssl.ca.location": "{stranger}"},
        PASSWORD,
        ["certificate verify failed", "unable to get local issuer certificate", "ssl.ca.location"],
    ),
    "host name": (
        ELSEWHERE,
        {},
        PASSWORD,
        ["certificate is not valid for '127.0.0.1'", "use the name in the broker's certificate"],
    ),
    "expired": (
        EXPIRED,
        {},
        PASSWORD,
        ["certificate has expired", "renew the broker's certificate"],
    ),
}


@pytest.mark.parametrize(
    ("listener", "changes", "password", "told"), REFUSED.values(), ids=list(REFUSED)
)
def test_who_is_not_let_in_is_told_why(
    guarded: Guarded,
    tmp_path: Path,
    listener: str,
    changes: dict[str, str],
    password: str,
    told: list[str],
) -> None:
    real = {k: v.format(stranger=guarded.stranger) for k, v in changes.items()}
    operator = Operator(tmp_path, {**guarded.connection(listener), **real}, password)
    service = operator.serves()
    code, said = operator("topics", "check")
    assert service.wait(TIMEOUT_SECONDS) == 4, operator.log
    assert code == 4, said
    for output in (said, operator.log):
        for text in told:
            assert text in output
        assert password not in output
        assert "Traceback" not in output


def test_an_authority_that_cannot_be_read_is_a_wrong_configuration(
    guarded: Guarded, tmp_path: Path
) -> None:
    nowhere = {"kafka.properties.ssl.ca.location": str(tmp_path / "nowhere.pem")}
    code, said = Operator(tmp_path, {**guarded.connection(), **nowhere})("topics", "check")
    assert code == 2
    assert "ssl.ca.location" in said


@pytest.mark.parametrize("topic", ["open", "open.state", "open.rankings", "open.dead-letters"])
def test_a_topic_without_rights_is_named(guarded: Guarded, tmp_path: Path, topic: str) -> None:
    names = {"stream.name": "open", "stream.topics": '["open"]'}
    operator = Operator(tmp_path, {**guarded.connection(), **names})
    assert operator("topics", "create", "--partitions", "1")[0] == 0
    denied = acl(ResourceType.TOPIC, topic, AclPermissionType.DENY)
    for answer in guarded.admin.create_acls([denied]).values():
        answer.result(TIMEOUT_SECONDS)
    try:
        code, said = operator("run")
    finally:
        only = AclBindingFilter(
            denied.restype,
            denied.name,
            denied.resource_pattern_type,
            f"User:{USER}",
            "*",
            denied.operation,
            denied.permission_type,
        )
        for answer in guarded.admin.delete_acls([only]).values():
            assert len(answer.result(TIMEOUT_SECONDS)) == 1
    assert code == 4, said
    assert f"looking for topic {topic}: " in said
    assert "give this user the right to read and write the topic" in said
    assert PASSWORD not in said
    assert "Traceback" not in said
