"""Checks configuration and rules with promtool."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def promtool(*words: str | Path, given: str | None = None) -> str:
    """What promtool says when it agrees, of what it is given; a test without it is skipped."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is missing (Debian package: prometheus)")
    said = subprocess.run(
        [program, *words], input=given, capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stdout + said.stderr
    return said.stdout
