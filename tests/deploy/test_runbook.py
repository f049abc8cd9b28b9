"""The runbook has a paragraph for every alert, exit code and error, and no other."""

from __future__ import annotations

import argparse
import inspect
import re
import shlex
from collections.abc import Iterator

import pytest

from stream_fs import errors
from stream_fs.cli.main import parser
from stream_fs.service.exit_codes import ExitCode
from tests.deploy.files import ALERTS, DEPLOY, ROOT

TEXTS = {
    name: (DEPLOY / name).read_text(encoding="utf-8")
    for name in ("runbook.md", "acls.md", "capacity.md", "sizing.md")
}
RUNBOOK = TEXTS["runbook.md"]
# What ends a command with a code of its own.
ROOTS = (
    errors.InvalidConfiguration,
    errors.InvalidParameter,
    errors.IncompatibleState,
    errors.Refusal,
    errors.TransportError,
)


def sections() -> dict[str, dict[str, str]]:
    """The paragraphs by heading, by chapter."""
    chapters = {}
    for chapter in re.split(r"^## ", RUNBOOK, flags=re.MULTILINE)[1:]:
        title, _, text = chapter.partition("\n")
        parts = re.split(r"^### ", text, flags=re.MULTILINE)[1:]
        chapters[title] = {p.partition("\n")[0]: p.partition("\n")[2].strip() for p in parts}
    return chapters


def outermost() -> set[str]:
    """The errors that are raised as such: those that have no kinds of their own."""
    classes = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, ROOTS)]
    # Those of other packages are kinds of these, and covered by their paragraphs.
    return {c.__name__ for c in classes if not set(c.__subclasses__()) & set(classes)}


def test_every_alert_has_its_paragraph() -> None:
    assert sections()["Alerts"].keys() == ALERTS.keys()


def test_every_exit_code_has_its_paragraph() -> None:
    assert list(sections()["Exit codes"]) == [f"Exit code {code.value}" for code in ExitCode]


def test_every_error_has_its_paragraph() -> None:
    chapters = sections()
    found = [
        name
        for title in ("The configuration", "Refusals", "The broker")
        for name in chapters[title]
    ]
    assert sorted(found) == sorted(outermost())


def test_every_paragraph_has_an_action() -> None:
    for chapter in sections().values():
        for title, text in chapter.items():
            assert len(text.split()) > 20, title


def mentioned() -> Iterator[str]:
    """Every command of ours that the documents name."""
    for text in TEXTS.values():
        yield from (" ".join(c.split()) for c in re.findall(r"`stream-fs\s+([^`]*)`", text))


@pytest.mark.parametrize("command", sorted(set(mentioned())))
def test_every_command_exists(command: str) -> None:
    stand_in = {"T": "digits", "P": "0", "N": "7", "FIRST": "7"}
    words = [stand_in.get(word, word) for word in shlex.split(command)]
    arguments = parser().parse_args(words)
    assert isinstance(arguments, argparse.Namespace)


def test_every_quoted_message_exists() -> None:
    sources = "".join(path.read_text("utf-8") for path in (ROOT / "stream_fs").rglob("*.py"))
    quoted = {" ".join(text.split()) for text in re.findall("“(.*?)”", RUNBOOK, re.DOTALL)}
    assert quoted
    assert [text for text in quoted if text not in sources] == []
