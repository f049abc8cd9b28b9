"""The broker of the integration tests, for those that kill its clients."""

from __future__ import annotations

from tests.support.real_broker import broker

__all__ = ["broker"]
