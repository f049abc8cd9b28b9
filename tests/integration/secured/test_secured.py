"""The service through TLS and SCRAM: what it needs to come in, and what it says when it cannot."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from stream_fs.broker import BOOTSTRAP_VARIABLE
from tests.integration.secured.checks import REFUSED, Operator, check_denied_topic, check_refused
from tests.integration.secured.guarded import (
    PASSWORD,
    Guarded,
    guarded_broker,
)
from tests.integration.service.stream import chunks
from tests.support.processes import wait_until
from tests.support.topics import TIMEOUT_SECONDS, flush


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(BOOTSTRAP_VARIABLE, raising=False)
        with guarded_broker(tmp_path_factory.mktemp("guarded")) as broker:
            yield broker


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


@pytest.mark.parametrize(
    ("listener", "changes", "password", "message"), REFUSED.values(), ids=list(REFUSED)
)
def test_refused_clients_get_the_reason(
    guarded: Guarded,
    tmp_path: Path,
    listener: str,
    changes: dict[str, str],
    password: str,
    message: list[str],
) -> None:
    check_refused(guarded, tmp_path, listener, changes, password, message)


def test_an_unreadable_certificate_authority_is_a_configuration_error(
    guarded: Guarded, tmp_path: Path
) -> None:
    nowhere = {"kafka.properties.ssl.ca.location": str(tmp_path / "nowhere.pem")}
    code, said = Operator(tmp_path, {**guarded.connection(), **nowhere})("topics", "check")
    assert code == 2
    assert "ssl.ca.location" in said


@pytest.mark.parametrize("topic", ["open", "open.state", "open.rankings", "open.dead-letters"])
def test_a_topic_without_rights_is_named(guarded: Guarded, tmp_path: Path, topic: str) -> None:
    check_denied_topic(guarded, tmp_path, topic)
