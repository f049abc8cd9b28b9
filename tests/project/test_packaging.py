"""Packaging and its rules: skips, the Makefile, the lock and the wheel."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command as if by hand: outside the make and the pytest that run this test."""
    outer = ("MAKE", "MFLAGS", "PYTEST_", "STREAM_FS_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(outer)}
    return subprocess.run(
        command, cwd=ROOT, env=clean | environment, capture_output=True, text=True, check=False
    )


def tracked(pattern: str = "*") -> list[Path]:
    listing = run("git", "ls-files", "-z", pattern)
    assert listing.returncode == 0, listing.stderr
    paths = [ROOT / name for name in listing.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def lines_matching(rule: re.Pattern[str], paths: list[Path]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in paths
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1)
        if rule.search(line)
    ]


SKIPS = {
    "mark": "@pytest.mark.skip(reason='no broker')\ndef test_it(): pass",
    "condition": "@pytest.mark.skipif(True, reason='no broker')\ndef test_it(): pass",
    "call": "def test_it(): pytest.skip('no broker')",
    "fixture": "@pytest.fixture\ndef it(): pytest.skip('no broker')\ndef test_it(it): pass",
    "module": "pytest.skip('no broker', allow_module_level=True)",
    "xfail": "@pytest.mark.xfail(reason='no broker')\ndef test_it(): assert False",
    "import": "pytest.importorskip('absent_module', reason='no broker')",
}


def verdicts(folder: Path, **environment: str) -> dict[str, str]:
    """What pytest under this project's rules says of each kind of skip that it explains."""
    shutil.copy(ROOT / "tests/conftest.py", folder)
    for name, source in SKIPS.items():
        (folder / f"test_{name}.py").write_text(f"import pytest\n{source}\n")
    there = (f"--rootdir={folder}", "--no-header", "--continue-on-collection-errors", str(folder))
    pytest = (sys.executable, "-m", "pytest", "-rA", "--no-fold-skipped")
    output = run(*pytest, *there, **environment).stdout
    explained = set(re.findall(r"test_(\w+)\.py.*no broker", output))
    summary = re.findall(r"^([A-Z]+) .*?test_(\w+)\.py", output, re.MULTILINE)
    return {name: verdict for verdict, name in summary if name in explained}


def test_a_skip_fails_where_nothing_may_be_missing(tmp_path: Path) -> None:
    found = verdicts(tmp_path, STREAM_FS_NO_SKIP="1")
    # pytest calls a failure outside of the test's own body an error.
    assert found == dict.fromkeys(SKIPS, "ERROR") | {"call": "FAILED", "xfail": "XFAIL"}


def test_a_skip_elsewhere_tells_its_reason(tmp_path: Path) -> None:
    assert verdicts(tmp_path) == dict.fromkeys(SKIPS, "SKIPPED") | {"xfail": "XFAIL"}


def test_no_file_names_a_machine_or_a_registry() -> None:
    rule = re.compile(
        r"(?<![\w.])/(work|root|home/\w+|Users/\w+|opt/wheels)/"
        r"|pypi\.org|pythonhosted\.org|npmjs\.|repo1?\.maven\.|deb\.debian\.|proxy\.golang"
        r"|(index[-_]url|find[-_]links)\W+(https?|file):"
    )
    assert lines_matching(rule, tracked()) == []


def test_every_ignored_finding_has_its_reason() -> None:
    rule = re.compile(r"#\s*(type:\s*ignore|noqa)(?![^#]*#\s*\w)")
    assert lines_matching(rule, tracked("*.py")) == []


def test_every_target_that_make_lists_can_be_made() -> None:
    listed = [line.split()[0] for line in run("make", "help").stdout.splitlines()]
    assert {"setup", "check", "test", "lock", "clean"} <= set(listed)
    for target in listed:
        dry_run = run("make", "--dry-run", target)
        assert dry_run.returncode == 0, dry_run.stderr


def test_the_lock_holds_every_requirement_with_hashes() -> None:
    pinned = {}
    for block in re.split(r"\n(?=\w)", (ROOT / "constraints.txt").read_text()):
        if pin := re.match(r"([\w.-]+)==([\w.]+)", block):
            assert "--hash=sha256:" in block, f"{pin[0]} has no hash"
            pinned[pin[1]] = pin[2]

    project = PROJECT["project"]
    lists = [
        PROJECT["build-system"]["requires"],
        project["dependencies"],
        *project["optional-dependencies"].values(),
        *PROJECT["dependency-groups"].values(),
    ]
    for requirement in map(Requirement, itertools.chain(*lists)):
        assert requirement.name in pinned, f"run make lock: {requirement} is not locked"
        assert requirement.specifier.contains(pinned[requirement.name]), requirement


def test_the_wheel_holds_the_typed_package_and_nothing_else(tmp_path: Path) -> None:
    built = run(
        *(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"),
        *("--wheel-dir", str(tmp_path), "."),
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.startswith(f"stream_fs-{PROJECT['project']['version']}-")
    names = zipfile.ZipFile(wheel).namelist()
    assert "stream_fs/py.typed" in names
    page = (ROOT / "stream_fs/service/page").iterdir()
    assert {f"stream_fs/service/page/{part.name}" for part in page} <= set(names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"stream_fs"}


def test_the_installed_version_is_the_declared_one() -> None:
    assert version("stream-fs") == PROJECT["project"]["version"]
