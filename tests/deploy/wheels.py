"""Making a wheel and installing it, apart from this checkout and without a network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

from tests.deploy.files import DOCKERFILE, DOCKERIGNORE, ROOT

PIP = (sys.executable, "-m", "pip")
COMPILER = os.environ.get("CC") or "cc"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def needed(requirements: list[str]) -> Iterator[Distribution]:
    """What these requirements need here, and what that needs."""
    seen: set[str] = set()
    while requirements:
        requirement = Requirement(requirements.pop())
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if wanted and requirement.name not in seen:
            seen.add(requirement.name)
            found = distribution(requirement.name)
            requirements += found.requires or []
            yield found


def context(folder: Path) -> None:
    """What the Dockerfile copies to build the wheel, without a local build."""
    local = [line[3:] for line in DOCKERIGNORE.splitlines() if line.startswith("**/")]
    build, _ = DOCKERFILE.rsplit("\nFROM ", 1)
    for words in re.findall(r"^COPY (.*)$", build, re.MULTILINE):
        for name in words.split()[:-1]:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns(*local))
            else:
                shutil.copy(ROOT / name, folder / name)


def run(*command: str | Path, cwd: Path, **further: str) -> str:
    """Run a command that knows nothing of this checkout."""
    ours = ("STREAM_FS_", "PYTHON")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    said = subprocess.run(
        command, cwd=cwd, env=clean | further, capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stdout + said.stderr
    return said.stdout


def built(source: Path, compiler: str = COMPILER) -> Path:
    """The wheel that is made of what the Dockerfile copies, with this C compiler."""
    context(source)
    folder = ("--wheel-dir", "dist")
    alone = ("--no-deps", "--no-build-isolation", "--no-index")
    run(*PIP, "wheel", *alone, *folder, ".", cwd=source, CC=compiler)
    (wheel,) = (source / "dist").glob("*.whl")
    return wheel


def installed(wheel: Path, home: Path) -> Path:
    """The programs of a new environment with the wheel and what it needs."""
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin/python"
    run(*PIP, "--python", python, "install", "--no-deps", "--no-index", wheel, cwd=home)
    paths = sysconfig.get_paths("venv", vars={"base": str(home), "platbase": str(home)})
    site = Path(paths["purelib"])
    for found in needed(list(PROJECT["dependencies"])):
        for top in {file.parts[0] for file in found.files or [] if file.parts[0] != ".."}:
            place = site / top
            # Several may share a cache of single modules.
            if top != "__pycache__":
                place.symlink_to(Path(str(found.locate_file(top))))
    return home / "bin"
