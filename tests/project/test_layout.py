"""The layout of package and tests that CONTRIBUTING.md describes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "stream_fs"
UNIT = ROOT / "tests" / "unit"
LONGEST_MODULE = 400


def module_of(test: Path) -> Path | None:
    """The module or package that a unit test is named after.

    `tests/unit/a/test_b.py` and `tests/unit/a/test_b_aspect.py` test `stream_fs/a/b.py`.
    """
    folder = PACKAGE / test.parent.relative_to(UNIT)
    words = test.stem.removeprefix("test_").split("_")
    for count in range(len(words), 0, -1):
        name = folder / "_".join(words[:count])
        if name.with_suffix(".py").is_file() or (name / "__init__.py").is_file():
            return name
    return None


def unit_tests() -> list[Path]:
    """All unit tests but those of the tools."""
    return sorted(path for path in UNIT.rglob("test_*.py") if path.parent.name != "tools")


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_unit_tests_are_named_after_modules() -> None:
    unnamed = [path for path in unit_tests() if module_of(path) is None]
    assert [str(path.relative_to(ROOT)) for path in unnamed] == []


def test_the_rule_finds_tests_without_a_module() -> None:
    assert module_of(UNIT / "wire" / "test_dead_letters.py") is not None
    assert module_of(UNIT / "wire" / "test_dead_letters_shortened.py") is not None
    assert module_of(UNIT / "wire" / "test_everything.py") is None
    assert module_of(UNIT / "nowhere" / "test_dead_letters.py") is None


def test_shared_code_is_not_in_test_modules() -> None:
    shared = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for name in imports(path)
        if name.startswith("tests.") and name.split(".")[-1].startswith("test_")
    ]
    assert shared == []


def test_unit_tests_share_code_by_the_support_package_only() -> None:
    names = {"conftest.py", "__init__.py"}
    others = [
        str(path.relative_to(ROOT))
        for path in sorted(UNIT.rglob("*.py"))
        if not path.name.startswith("test_") and path.name not in names
    ]
    assert others == []


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_modules_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_MODULE
