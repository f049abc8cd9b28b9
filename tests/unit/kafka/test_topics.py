"""A client that does not answer in its time is not waited for."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from stream_fs.errors import FatalError
from stream_fs.kafka import ClientSettings, Topics, topics


class Silent:
    def describe_configs(self, resources: list[Any], **_: Any) -> dict[Any, Future[Any]]:
        return {resource: Future() for resource in resources}

    def poll(self, _: float) -> int:
        return 0


def test_a_client_that_ignores_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "admin_client", lambda *_: Silent())
    monkeypatch.setattr(topics, "_LATE_SECONDS", 0.01)
    asking = Topics(ClientSettings("nowhere:9092", "group", timeout=0.01))
    with pytest.raises(FatalError, match=r"topic a: no answer from kafka\.bootstrap=nowhere:9092"):
        asking.config("a")
