"""Links and commands in the documents lead to files, headings and modules that exist."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("deploy/*.md")])
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([\w-]+))?\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """The anchors of the headings, as hosts of repositories make them."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def broken_links(document: Path, text: str) -> list[str]:
    broken = []
    for path, anchor in LINK.findall(FENCED.sub("", text)):
        target = document.parent / path if path else document
        if not target.exists() or (anchor and anchor not in anchors(target.read_text("utf-8"))):
            broken.append(f"{path}#{anchor}")
    return broken


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_has_its_target(document: Path) -> None:
    assert broken_links(document, document.read_text(encoding="utf-8")) == []


def test_a_broken_link_is_found() -> None:
    text = "[a](README.md) [b](README.md#operate-it) [c](none.md) [d](README.md#none) [e](#none)"
    document = ROOT / "CONTRIBUTING.md"
    assert broken_links(document, text) == ["none.md#", "README.md#none", "#none"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_module_that_is_run_exists(document: Path) -> None:
    named = re.findall(r"python -m ([\w.]+)", document.read_text(encoding="utf-8"))
    assert [module for module in named if find_spec(module) is None] == []
