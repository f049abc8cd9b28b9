"""The page as served: its parts, their types, and the content security policy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from stream_fs.service.http import WebServer, status_pages
from stream_fs.service.observability.status import StatusObserver
from stream_fs.service.observability.status_document import Health
from tests.support.configurations import loaded
from tests.support.schemas import validator
from tests.support.web import ask

READY = Health(alive=True, ready=True, reason=None)
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WebServer]:
    observer = StatusObserver(loaded(tmp_path), lambda: 1_700_000_000.0)
    with WebServer("127.0.0.1", 0, status_pages(lambda: observer.status(READY, None))) as server:
        yield server


def test_the_page_and_its_status(server: WebServer) -> None:
    status, headers, body = ask(server, "/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert body.startswith("<!doctype html>")
    status, headers, body = ask(server, "/api/status")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert headers["Cache-Control"] == "no-store"
    assert '"stream":"digits"' in body


def test_everything_that_a_part_refers_to_is_served(server: WebServer) -> None:
    """From the page, through its scripts, to the last module."""
    seen, left = set(), ["/"]
    while left:
        path = left.pop()
        seen.add(path)
        status, headers, body = ask(server, path)
        assert status == 200, path
        kind = path.rpartition(".")[2] if path != "/" else "html"
        assert headers["Content-Type"].startswith(TYPES[kind]), path
        found = re.findall(r'(?:src|href)="(page/[^"]+)"', body)
        found += [f"page/{name}" for name in re.findall(r'from "\./([^"]+)"', body)]
        left += [place for name in found if (place := f"/{name}") not in seen]
    assert seen == {
        "/",
        *(p for p in status_pages(lambda: pytest.fail("no")) if p.startswith("/page/")),
    }


def test_nothing_comes_from_elsewhere_and_nothing_is_inline(server: WebServer) -> None:
    for path in status_pages(lambda: pytest.fail("no")):
        body = ask(server, path)[2]
        outside = re.sub(r'"http://www\.w3\.org/2000/svg"', "", body)
        assert "//" not in re.sub(r"^\s*//.*$", "", outside, flags=re.MULTILINE), path
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", body)
    page = ask(server, "/")[2]
    assert not re.search(r"\bstyle=|\bon[a-z]+=|<style|<script>", page)


def test_the_policy_allows_only_scripts_of_this_server(server: WebServer) -> None:
    policy = ask(server, "/")[1]["Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["connect-src"] == rules["style-src"] == "'self'"
    assert rules["frame-ancestors"] == rules["base-uri"] == rules["form-action"] == "'none'"


@pytest.mark.parametrize("path", ["/", "/api/status", "/page/main.js"])
def test_it_can_only_be_read(server: WebServer, path: str) -> None:
    assert ask(server, path, "POST")[0] == 405
    status, headers, body = ask(server, path, "HEAD")
    assert (status, body) == (200, "")
    assert int(headers["Content-Length"]) > 0


def test_the_schema_has_no_place_for_more() -> None:
    """So that nothing can slip into the document unnoticed."""
    schema = validator("status").schema
    closed = [schema, *schema["$defs"].values()]
    assert all(part["additionalProperties"] is False for part in closed if "properties" in part)
