"""The broker of the integration tests, for faults that leave it alone."""

from __future__ import annotations

from tests.integration.conftest import broker

__all__ = ["broker"]
