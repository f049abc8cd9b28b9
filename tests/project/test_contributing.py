"""CONTRIBUTING.md names files, targets and parts of the repository that exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ADDITIONS = (
    "a command",
    "a configuration key",
    "a preset",
    "a score",
    "a metric",
    "an alert",
    "an error",
    "an input format",
    "an experiment",
)


def rows() -> dict[str, tuple[str, str]]:
    """The files to touch and the tests, by what is to be added."""
    _, _, table = TEXT.partition("| to add | change | and test in |\n")
    cells = [line.strip("|").split("|") for line in table.splitlines()[1:]]
    return {title.strip(): (touched, tests) for title, touched, tests in cells}


def paths(text: str) -> list[str]:
    """Everything in backticks that is a path: it has a slash or a suffix, and no space."""
    quoted = re.findall(r"`([^`\s]+)`", text)
    return [
        name
        for name in quoted
        if not name.startswith(".venv/") and ("/" in name or name.endswith((".md", ".yaml")))
    ]


def exists(name: str) -> bool:
    """Whether there is such a path; NAME stands for a module, of which there is already one."""
    return any(ROOT.glob(name.replace("NAME", "*").rstrip("/")))


def test_the_table_has_every_addition() -> None:
    assert tuple(sorted(rows())) == tuple(sorted(ADDITIONS))


@pytest.mark.parametrize("addition", ADDITIONS)
def test_every_path_of_an_addition_exists(addition: str) -> None:
    for cell in rows()[addition]:
        assert [name for name in paths(cell) if not exists(name)] == []
    assert paths(rows()[addition][0])


@pytest.mark.parametrize("addition", ["an input format", "an experiment"])
def test_a_format_and_an_experiment_take_two_files(addition: str) -> None:
    touched, _ = rows()[addition]
    assert len(re.findall(r"NAME\.py`", touched)) == 1
    assert touched.count(";") == 1


def test_every_other_path_exists() -> None:
    assert [name for name in paths(TEXT) if not exists(name)] == []
    assert len(paths(TEXT)) > 30


def test_every_target_exists() -> None:
    named = set(re.findall(r"`make ([a-z-]+)`", TEXT))
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert named
    assert named <= {line.split()[0] for line in listed.stdout.splitlines()}


def test_a_missing_path_is_noticed() -> None:
    assert not exists("stream_fs/selector/ranks.py")
    assert not exists("tests/unit/cli/NAME.txt")
    assert exists("stream_fs/cli/NAME.py")
    assert paths("`a/b.py` and `name` or `x y/z`, `c.md`") == ["a/b.py", "c.md"]
