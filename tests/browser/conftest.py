"""One browser for all tests, and a window of its own for each visit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.browser.chromium import ABSENT, PROGRAM, Visit, running_browser

MakeVisit = Callable[..., Visit]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if PROGRAM is None:
        pytest.skip(ABSENT)
    with running_browser() as browser:
        yield browser


@pytest.fixture
def visit(browser: Browser) -> Iterator[MakeVisit]:
    """Opens a page; in the end nothing may have gone wrong, or been asked of anybody else."""
    made: list[Visit] = []

    def make(*arguments: Any, **options: Any) -> Visit:
        made.append(Visit(browser, *arguments, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()
    assert [error for one in made for error in one.console_errors] == []
    assert [url for one in made for url in one.elsewhere()] == []
