"""Workers, several at a time, and what they have found together."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import fields
from pathlib import Path
from typing import Final

from tests.hostile.every import every_target
from tests.hostile.worker import Findings, described

ROOT: Final = Path(__file__).parents[2]
HANGS_SECONDS: Final = 120.0
"""Without another input: far more than any takes, also on a busy machine."""
_LOOK_SECONDS: Final = 0.5


def shares(weights: dict[str, int], inputs: int) -> dict[str, int]:
    """How many inputs each target gets, by its weight; at least one."""
    whole = sum(weights.values())
    return {name: max(1, -(-inputs * weight // whole)) for name, weight in weights.items()}


def attack(inputs: int, seed: int, workers: int) -> Iterator[tuple[str, Findings]]:
    """Hostile inputs for every decoder; by decoder, when it is known, what became of them."""
    with (
        tempfile.TemporaryDirectory(prefix="stream-fs-hostile-") as folder,
        ThreadPoolExecutor(workers) as pool,
    ):
        weights = {name: target.weight for name, target in every_target(Path(folder)).items()}
        running = {
            pool.submit(one_target, name, count, seed, Path(folder)): name
            for name, count in shares(weights, inputs).items()
        }
        for future in as_completed(running):
            yield running[future], future.result()


def one_target(name: str, inputs: int, seed: int, folder: Path) -> Findings:
    """All inputs of one decoder, by as many processes as it takes."""
    found = Findings()
    note = folder / f"at-{name.replace(' ', '-').replace(',', '')}"
    number = 0
    while number < inputs:
        note.write_bytes(bytes(16))
        arguments = [name, "--seed", str(seed), "--first", str(number), "--at", str(note)]
        output, ending = _run([*arguments, "--inputs", str(inputs - number)], note)
        if ending is None:
            return added(found, Findings(**json.loads(output)))
        at = int.from_bytes(note.read_bytes()[:8], "little")
        target = every_target(folder)[name]
        found.faults.append(described(name, at, target.input(seed, at), ending))
        found.inputs += at + 1 - number
        number = at + 1
    return found


def _run(arguments: Sequence[str], note: Path) -> tuple[bytes, str | None]:
    """What a worker printed, and how it ended where that was not in order."""
    command = [sys.executable, "-m", "tests.hostile.worker", *arguments]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=errors)
        seen, since = b"", time.monotonic()
        while process.poll() is None:
            now = note.read_bytes()
            if now != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since > HANGS_SECONDS:
                process.kill()
                process.wait()
                return b"", f"nothing came of it within {HANGS_SECONDS:g} s"
            try:
                process.wait(_LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                continue
        out.seek(0)
        errors.seek(0)
        if process.returncode == 0:
            return out.read(), None
        said = errors.read().decode(errors="replace").strip().rpartition("\n")[2]
        return b"", f"the process ended with {process.returncode}: {said}"


def added(one: Findings, other: Findings) -> Findings:
    """The findings of both."""
    highest = ("largest", "slowest", "slowest_number")
    totals = {
        field.name: getattr(one, field.name) + getattr(other, field.name)
        for field in fields(Findings)
        if field.name not in highest
    }
    slower = max(one, other, key=lambda found: found.slowest)
    return Findings(
        **totals,
        largest=max(one.largest, other.largest),
        slowest=slower.slowest,
        slowest_number=slower.slowest_number,
    )
