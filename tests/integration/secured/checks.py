"""Checks of the service at a broker that requires TLS and SCRAM, for tests and campaign."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka.admin._acl import AclBindingFilter, AclPermissionType
from confluent_kafka.admin._resource import ResourceType

from tests.integration.secured.guarded import (
    ELSEWHERE,
    EXPIRED,
    GOOD,
    PASSWORD,
    USER,
    WRONG,
    Guarded,
    acl,
)
from tests.integration.service.services import ROOT
from tests.support.topics import TIMEOUT_SECONDS

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


class Operator:
    """A client with a configuration, whose password comes from the environment or from a file."""

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


def check_refused(
    guarded: Guarded,
    folder: Path,
    listener: str,
    changes: dict[str, str],
    password: str,
    message: list[str],
) -> None:
    """Check that service and command end with the reason, and never show the password."""
    real = {k: v.format(stranger=guarded.stranger) for k, v in changes.items()}
    operator = Operator(folder, {**guarded.connection(listener), **real}, password)
    service = operator.serves()
    code, said = operator("topics", "check")
    assert service.wait(TIMEOUT_SECONDS) == 4, operator.log
    assert code == 4, said
    for output in (said, operator.log):
        for text in message:
            assert text in output
        assert password not in output
        assert "Traceback" not in output


def check_denied_topic(guarded: Guarded, folder: Path, topic: str) -> None:
    """Check that the service names a topic for which rights are missing."""
    names = {"stream.name": "open", "stream.topics": '["open"]'}
    operator = Operator(folder, {**guarded.connection(), **names})
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
