"""The broker of the integration tests, for those that kill its clients."""

from __future__ import annotations

from tests.integration.conftest import broker

__all__ = ["broker"]
