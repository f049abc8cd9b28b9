"""What is common to the clients: their log."""

from __future__ import annotations

import logging

import pytest

from stream_fs.kafka.clients import LOGGER

ATTEMPT = ("%s [%s] %s", "FAIL", "client", "connection refused")


def test_the_clients_lines_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    LOGGER.warning("%s [%s] %s", "GETPID", "client", "retrying")
    assert caplog.messages == ["GETPID [client] retrying"]


def test_failed_attempts_to_connect_are_for_debugging(caplog: pytest.LogCaptureFixture) -> None:
    LOGGER.error(*ATTEMPT)
    assert caplog.messages == []
    with caplog.at_level(logging.DEBUG, LOGGER.name):
        LOGGER.error(*ATTEMPT)
    assert caplog.messages == ["FAIL [client] connection refused"]
