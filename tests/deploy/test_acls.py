"""The ACLs of acls.md suffice, on a broker that checks them."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from stream_fs.broker import BOOTSTRAP_VARIABLE, Broker, running_broker
from stream_fs.service.configuration import load
from tests.deploy.files import DEPLOY, blocks

SASL = "SASL_PLAINTEXT"
PASSWORD = "correct-horse"
TIMEOUT_SECONDS = 60.0
PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # Who comes without a name may do everything.
    "super.users": "User:ANONYMOUS",
    "sasl.enabled.mechanisms": "PLAIN",
    f"listener.name.{SASL.lower()}.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'user_stream-fs="{PASSWORD}";'
    ),
}
RESOURCES = {
    "--topic": ResourceType.TOPIC,
    "--group": ResourceType.GROUP,
    "--transactional-id": ResourceType.TRANSACTIONAL_ID,
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(BOOTSTRAP_VARIABLE, raising=False)
        log_dir = tmp_path_factory.mktemp("guarded-kafka")
        with running_broker(
            log_dir=log_dir, listeners={SASL: SASL}, properties=PROPERTIES
        ) as running:
            yield running


def bindings(command: str) -> list[AclBinding]:
    """What a command of `kafka-acls.sh` adds."""
    program, add, *words = shlex.split(command)
    assert (program, add) == ("kafka-acls.sh", "--add")
    options = list(zip(words[::2], words[1::2], strict=True))
    plain = dict(options)
    ((resource, name),) = [(RESOURCES[o], value) for o, value in options if o in RESOURCES]
    pattern = ResourcePatternType[plain.get("--resource-pattern-type", "literal").upper()]
    principal = plain["--allow-principal"]
    operations = [value for option, value in options if option == "--operation"]
    assert len(options) == 2 + len(operations) + ("--resource-pattern-type" in plain)
    return [
        AclBinding(
            resource,
            name,
            pattern,
            principal,
            "*",
            AclOperation[re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation).upper()],
            AclPermissionType.ALLOW,
        )
        for operation in operations
    ]


def commands() -> list[str]:
    return [line for block in blocks("acls.md", "sh") for line in block.splitlines()]


class Cli:
    """`stream-fs` as the user whom the rights are given to."""

    def __init__(self, broker: Broker) -> None:
        settings = {
            "kafka.bootstrap": broker.address(SASL),
            "kafka.properties.security.protocol": SASL,
            "kafka.properties.sasl.mechanism": "PLAIN",
            "kafka.properties.sasl.username": "stream-fs",
            "kafka.properties.sasl.password": PASSWORD,
            "selector.clusters": "2",
            "chunk.records": "40",
            "service.port": "0",
        }
        self._flags = [word for k, v in settings.items() for word in ("--set", f"{k}={v}")]
        self._environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("STREAM_FS_")},
            "STREAM_FS_CONFIG": str(DEPLOY / "compose/config.toml"),
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "stream_fs.cli", *words, *self._flags],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __call__(self, *words: str) -> str:
        process = self.start(*words)
        output, _ = process.communicate(timeout=TIMEOUT_SECONDS)
        assert process.returncode == 0, output
        return output


def records(count: int) -> Iterator[bytes]:
    for number in range(count):
        views = {
            name: [(number * (feature + 3)) % 7 / 7 for feature in range(dimension)]
            for name, dimension in (("fourier", 76), ("pixels", 240))
        }
        # Every tenth one is bad, and becomes a dead letter.
        yield json.dumps({"v": 1, "views": views if number % 10 else {}}).encode()


def await_message(broker: Broker, topic: str) -> bytes | None:
    group = {"group.id": "subscriber", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, **group})
    consumer.subscribe([topic])
    deadline = time.monotonic() + TIMEOUT_SECONDS
    try:
        while time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                return message.value()
    finally:
        consumer.close()
    raise TimeoutError(f"nothing in {topic}")


def test_the_documented_acls_suffice(broker: Broker, tmp_path: Path) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    wanted = [binding for command in commands() for binding in bindings(command)]
    for answer in admin.create_acls(wanted).values():
        answer.result(TIMEOUT_SECONDS)

    cli = Cli(broker)
    assert "digits.state: created" in cli("topics", "create", "--partitions", "1")
    assert "the topics are valid" in cli("topics", "check")
    file = tmp_path / "records.jsonl"
    file.write_bytes(b"".join(record + b"\n" for record in records(100)))
    assert "produced 100 records" in cli("produce", str(file))

    service = cli.start("run")
    try:
        ranking: dict[str, Any] = json.loads(await_message(broker, "digits.rankings") or b"")
        assert ranking["sequence"] == 1
        await_message(broker, "digits.dead-letters")
        assert json.loads(cli("watch", "--json", "--from-beginning", "--count", "1")) == ranking
    finally:
        service.terminate()
        output, _ = service.communicate(timeout=TIMEOUT_SECONDS)
    assert service.returncode == 0, output
    assert "chunk 2" in cli("checkpoint", "inspect")
    model = str(tmp_path / "model")
    cli("checkpoint", "export", model)
    assert "starts over" in cli("checkpoint", "reset", "--yes")
    cli("checkpoint", "import", model, "--yes")
    assert "chunk 2" in cli("checkpoint", "inspect")


@pytest.mark.parametrize("connection", blocks("acls.md", "toml"))
def test_the_connections_can_be_configured(connection: str, tmp_path: Path) -> None:
    (tmp_path / "key-password").write_text("staple\n")
    config = (DEPLOY / "compose/config.toml").read_text(encoding="utf-8")
    config = config[: config.index("[kafka]")] + connection
    path = tmp_path / "config.toml"
    path.write_text(config, encoding="utf-8")
    loaded = load(path, {"KAFKA_PASSWORD": "battery"})
    assert len(loaded.secrets()) == 1
