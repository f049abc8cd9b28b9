"""The broker of the integration tests, for the short forms of the campaign."""

from __future__ import annotations

from tests.integration.conftest import broker

__all__ = ["broker"]
