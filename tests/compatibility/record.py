"""Writes the recordings: ``python -m tests.compatibility.record OLD_CHECKOUT``.

OLD_CHECKOUT is a checkout of release 0.1.0 with its `.venv`. A recording is plain data as
MessagePack, compressed, and says which release on which machine made it.
"""

from __future__ import annotations

import lzma
import platform
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgpack

from tests.compatibility.arrays import selector_jobs
from tests.compatibility.cases import CASES
from tests.compatibility.releases import Old, Runner
from tests.compatibility.replays import Folder, replayed_cases, stages

RELEASE: Final = "0.1.0"
FOLDER: Final = Path(__file__).with_name("recorded")


@cache
def recorded(kind: str) -> dict[str, dict[str, Any]]:
    """Recordings of a kind by name: `pipeline`, `replay` or `selector`."""
    return dict(msgpack.unpackb(lzma.decompress(_path(kind).read_bytes()))["cases"])


def _path(kind: str) -> Path:
    return FOLDER / f"{RELEASE}-{kind}.msgpack.xz"


def main(checkout: str) -> None:
    """Write them all."""
    old = Old(Path(checkout))
    version = old.version()
    if version != RELEASE:
        raise SystemExit(f"{checkout} is release {version}, not {RELEASE}")
    made_by = {"release": version, "commit": _commit(Path(checkout)), "machine": platform.machine()}
    FOLDER.mkdir(exist_ok=True)
    for kind, cases in {
        "pipeline": pipeline(old),
        "replay": replay(old),
        "selector": selector(old),
    }.items():
        content = msgpack.packb({"made by": made_by, "cases": cases})
        _path(kind).write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))
        print(f"{_path(kind).stat().st_size:8} {_path(kind).name}")


def pipeline(old: Runner) -> dict[str, Any]:
    """Processes over topics in memory."""
    crash = ("records sent", 3)
    jobs = [case.job(crash=crash if case.linger == 0 else None) for case in CASES]
    found = zip(CASES, jobs, old.pipeline(jobs), strict=True)
    return {case.name: {"job": job, "result": result} for case, job, result in found}


def replay(old: Runner) -> dict[str, Any]:
    """Files through `stream-fs replay`."""
    found = {}
    for case in replayed_cases():
        contents = stages(case)
        with tempfile.TemporaryDirectory() as folder:
            result = Folder(Path(folder) / "replay", case.name, case.config).replay(
                old.command, contents
            )
        found[case.name] = {"config": case.config, "contents": contents, "result": list(result)}
    return found


def selector(old: Runner) -> dict[str, Any]:
    """The public selector; in the end each is merged with what it was two chunks before."""
    jobs = selector_jobs()
    for job, result in zip(jobs.values(), old.selector(list(jobs.values())), strict=True):
        job["other"] = result["chunks"][-3]["saved"]
    found = zip(jobs, jobs.values(), old.selector(list(jobs.values())), strict=True)
    return {name: {"job": job, "result": result} for name, job, result in found}


def _commit(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main(*sys.argv[1:])
