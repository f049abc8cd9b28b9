"""Debian's Chromium, driven by Playwright; nothing is fetched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

PROGRAM = shutil.which("chromium")
ABSENT = "Chromium is not installed (Debian package: chromium)"
PATIENCE = 60_000
"""Milliseconds until to give up; far more than anything takes, also on a busy machine."""


@contextmanager
def running_browser() -> Iterator[Browser]:
    # Chromium has no sandbox for root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """A page in a window of its own, and everything that went wrong with it.

    `prepare` is given the page before it is loaded.
    """

    def __init__(
        self,
        browser: Browser,
        address: str,
        prepare: Callable[[Page], object] = lambda _: None,
        **context: Any,
    ) -> None:
        self.address = address
        self.origin = _origin(address)
        self.console_errors: list[str] = []
        self.requests: list[str] = []
        self._context = browser.new_context(**{"locale": "en-GB", **context})
        self._context.set_default_timeout(PATIENCE)
        self.page: Page = self._context.new_page()
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.console_errors.append(str(error)))
        self.page.on("request", self._asked)
        prepare(self.page)
        self.page.goto(address)

    def close(self) -> None:
        self._context.close()

    def elsewhere(self) -> list[str]:
        """Requests to any other origin than the page's own."""
        return [url for url in self.requests if _origin(url) != self.origin]

    def _asked(self, request: Request) -> None:
        self.requests.append(request.url)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.console_errors.append(message.text)


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc
