"""The log lines of the clients."""

from __future__ import annotations

import logging

import pytest

from stream_fs.kafka.librdkafka import LOGGER

ATTEMPT = ("%s [%s] %s", "FAIL", "client", "connection refused")


def test_log_lines_of_a_client_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    LOGGER.warning("%s [%s] %s", "GETPID", "client", "retrying")
    assert caplog.messages == ["GETPID [client] retrying"]


def test_failed_connection_attempts_are_logged_at_level_debug_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    LOGGER.error(*ATTEMPT)
    assert caplog.messages == []
    with caplog.at_level(logging.DEBUG, LOGGER.name):
        LOGGER.error(*ATTEMPT)
    assert caplog.messages == ["FAIL [client] connection refused"]
