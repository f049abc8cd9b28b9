"""Runs workers in parallel, and combines their findings."""

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

from tests.hostile.registry import all_targets
from tests.hostile.worker import Findings, describe

ROOT: Final = Path(__file__).parents[2]
HANG_SECONDS: Final = 120.0
"""Without another input: far more than any takes, even on a busy machine."""
_POLL_SECONDS: Final = 0.5


def shares(weights: dict[str, int], inputs: int) -> dict[str, int]:
    """By target, the number of inputs, in proportion to its weight; at least one."""
    whole = sum(weights.values())
    return {name: max(1, -(-inputs * weight // whole)) for name, weight in weights.items()}


def run(inputs: int, seed: int, workers: int) -> Iterator[tuple[str, Findings]]:
    """Hostile inputs for every target; yields name and findings as targets finish."""
    with (
        tempfile.TemporaryDirectory(prefix="stream-fs-hostile-") as folder,
        ThreadPoolExecutor(workers) as pool,
    ):
        weights = {name: target.weight for name, target in all_targets(Path(folder)).items()}
        running = {
            pool.submit(run_target, name, count, seed, Path(folder)): name
            for name, count in shares(weights, inputs).items()
        }
        for future in as_completed(running):
            yield running[future], future.result()


def run_target(name: str, inputs: int, seed: int, folder: Path) -> Findings:
    """All inputs of one target; a process that crashes is followed by another."""
    findings = Findings()
    note = folder / f"at-{name.replace(' ', '-').replace(',', '')}"
    number = 0
    while number < inputs:
        note.write_bytes(bytes(16))
        arguments = [name, "--seed", str(seed), "--first", str(number), "--at", str(note)]
        output, failure = _run_worker([*arguments, "--inputs", str(inputs - number)], note)
        if failure is None:
            return combined(findings, Findings(**json.loads(output)))
        at = int.from_bytes(note.read_bytes()[:8], "little")
        target = all_targets(folder)[name]
        findings.faults.append(describe(name, at, target.input(seed, at), failure))
        findings.inputs += at + 1 - number
        number = at + 1
    return findings


def _run_worker(arguments: Sequence[str], note: Path) -> tuple[bytes, str | None]:
    """The output of a worker, and its failure; None for success."""
    command = [sys.executable, "-m", "tests.hostile.worker", *arguments]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=errors)
        last_note, since = b"", time.monotonic()
        while process.poll() is None:
            now = note.read_bytes()
            if now != last_note:
                last_note, since = now, time.monotonic()
            elif time.monotonic() - since > HANG_SECONDS:
                process.kill()
                process.wait()
                return b"", f"no progress within {HANG_SECONDS:g} s"
            try:
                process.wait(_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                continue
        out.seek(0)
        errors.seek(0)
        if process.returncode == 0:
            return out.read(), None
        text = errors.read().decode(errors="replace").strip().rpartition("\n")[2]
        return b"", f"the process ended with {process.returncode}: {text}"


def combined(one: Findings, other: Findings) -> Findings:
    """The findings of two runs."""
    highest = ("largest", "slowest", "slowest_number")
    totals = {
        field.name: getattr(one, field.name) + getattr(other, field.name)
        for field in fields(Findings)
        if field.name not in highest
    }
    slower = max(one, other, key=lambda findings: findings.slowest)
    return Findings(
        **totals,
        largest=max(one.largest, other.largest),
        slowest=slower.slowest,
        slowest_number=slower.slowest_number,
    )
