"""The settings of editors and of pre-commit agree with the repository and with `make check`."""

from __future__ import annotations

import configparser
import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def commands_of_check() -> list[str]:
    """The recipe of the target `check`."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"^check:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    return [line.strip().replace("$(VENV)", ".venv") for line in recipe.splitlines()]


def test_pre_commit_runs_what_make_check_runs() -> None:
    settings = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    (repository,) = settings["repos"]
    assert repository["repo"] == "local"
    assert [hook["entry"] for hook in repository["hooks"]] == commands_of_check()
    for hook in repository["hooks"]:
        # The whole repository is checked, whichever files a commit has.
        assert (hook["language"], hook["pass_filenames"]) == ("system", False)
        assert hook["always_run"] is True


def editor_settings() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    text = (ROOT / ".editorconfig").read_text(encoding="utf-8")
    parser.read_string(f"[preamble]\n{text}")
    return parser


def text_files() -> Iterator[Path]:
    listing = subprocess.run(
        ["git", "grep", "-z", "-I", "--files-with-matches", ""],  # -I leaves out binary files
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listing.stdout.split("\0")):
        yield ROOT / name


def alternatives(pattern: str) -> list[str]:
    """The patterns that a pattern with one `{a,b}` stands for."""
    found = re.fullmatch(r"(.*)\{(.*)\}(.*)", pattern)
    if found is None:
        return [pattern]
    return [f"{found[1]}{choice}{found[3]}" for choice in found[2].split(",")]


def settings_for(path: Path, settings: configparser.ConfigParser) -> Mapping[str, str]:
    merged: dict[str, str] = {}
    for pattern in settings.sections():
        if any(fnmatch(path.name, choice) for choice in alternatives(pattern)):
            merged |= dict(settings[pattern])
    return merged


def test_every_file_is_as_the_editor_settings_require() -> None:
    settings = editor_settings()
    wrong = []
    for path in text_files():
        required = settings_for(path, settings)
        content = path.read_bytes()
        text = content.decode(required["charset"])
        tabs = bool(re.search(r"^ *\t", text, re.MULTILINE))
        if (
            b"\r" in content
            or re.search(r"[ \t]$", text, re.MULTILINE)
            or (text and not text.endswith("\n"))
            or tabs is not (required["indent_style"] == "tab")
        ):
            wrong.append(str(path.relative_to(ROOT)))
    assert wrong == []


def test_the_line_length_is_that_of_the_formatter() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    length = editor_settings()["*.py"]["max_line_length"]
    assert int(length) == project["tool"]["ruff"]["line-length"]
