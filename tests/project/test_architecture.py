"""Every file and function that ARCHITECTURE.md names exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
ROWS: list[tuple[str, str]] = re.findall(
    r"\| `(stream_fs/[\w/]+\.py)` \| `([\w.]+)` \|$", PAGE, re.MULTILINE
)
DEFINITIONS = (ast.ClassDef, ast.FunctionDef)


def defines(path: Path, name: str) -> bool:
    """Whether a module defines a function, or a method `Class.method`."""
    body: list[ast.stmt] = ast.parse(path.read_text(encoding="utf-8")).body
    for part in name.split("."):
        found = [node for node in body if isinstance(node, DEFINITIONS) and node.name == part]
        if not found:
            return False
        body = found[0].body
    return True


@pytest.mark.parametrize(("path", "name"), sorted(set(ROWS)))
def test_the_function_exists(path: str, name: str) -> None:
    assert defines(ROOT / path, name)


def test_every_row_of_a_table_names_a_function() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "`stream_fs/" in line]
    assert len(rows) == len(ROWS) > 30


def test_every_other_path_exists() -> None:
    for path in re.findall(r"`((?:stream_fs|tests)/[\w/.]+)`", PAGE):
        assert (ROOT / path).exists(), path


def test_a_function_that_does_not_exist_is_found() -> None:
    worker = ROOT / "stream_fs/pipeline/worker.py"
    assert defines(worker, "Worker.run_once")
    assert not defines(worker, "Worker.run_twice")
    assert not defines(worker, "run_once")
