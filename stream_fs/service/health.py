"""What a supervisor asks: /metrics, /healthz (the loop makes progress), /readyz (restored)."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import TypeAlias

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from stream_fs.service.web import TEXT, Answer, Page

Check: TypeAlias = Callable[[], tuple[bool, str]]
"""Whether all is well, and if not, why not."""


def pages(registry: CollectorRegistry, alive: Check, ready: Check) -> dict[str, Page]:
    """The pages that every service has, by path."""
    return {
        "/metrics": lambda: Answer(
            HTTPStatus.OK, CONTENT_TYPE_PLAIN_0_0_4, generate_latest(registry)
        ),
        "/healthz": lambda: _checked(alive),
        "/readyz": lambda: _checked(ready),
    }


def _checked(check: Check) -> Answer:
    well, reason = check()
    status = HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE
    return Answer(status, TEXT, f"{'ok' if well else reason}\n".encode())
