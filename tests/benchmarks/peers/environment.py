"""The environment of the frameworks: locked versions, installed for this benchmark only."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from tests.benchmarks.serving import ROOT

FOLDER: Final = ROOT / "build" / "peers"
_LOCK: Final = Path(__file__).with_name("constraints.txt")


@cache
def interpreter() -> Path:
    """Python with the frameworks, installed if need be. Raises `CalledProcessError`."""
    python, stamp = FOLDER / "bin" / "python", FOLDER / ".installed"
    lock = hashlib.sha256(_LOCK.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != lock:
        _run(sys.executable, "-m", "venv", str(FOLDER))
        install = ("-m", "pip", "install", "--quiet", "--require-hashes", "--only-binary", ":all:")
        _run(str(python), *install, "-r", str(_LOCK))
        stamp.write_text(lock, encoding="utf-8")
    return python


def problem(framework: str) -> str | None:
    """Why a framework is not available here, or None."""
    try:
        _run(str(interpreter()), "-c", f"import {framework}")
    except subprocess.CalledProcessError as error:
        said: str = error.stderr.strip() or str(error)
        return said.splitlines()[-1]
    return None


def versions(frameworks: Iterable[str]) -> dict[str, str]:
    """The installed version of each, or why it is not installed."""
    found = {}
    for framework in frameworks:
        missing = problem(framework)
        if missing is None:
            script = f"from importlib.metadata import version; print(version({framework!r}))"
            found[framework] = _run(str(interpreter()), "-c", script).strip()
        else:
            found[framework] = f"not here, and not compared ({missing})"
    return found


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
