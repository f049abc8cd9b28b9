"""The programs, their delivery guarantees, and how their processes are started."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.benchmarks.measure import Goal
from tests.benchmarks.peers import environment
from tests.benchmarks.peers.job import CHUNK, Job

EVERY: Final = 10
"""Chunks between two snapshots of the service, and of peers that do not save every chunk."""


@dataclass(frozen=True)
class Program:
    """A program; `framework` is what it needs beside stream_fs."""

    name: str
    module: str
    exactly_once: bool = False
    every: int = EVERY
    framework: str | None = None
    goal: Goal | None = None

    @property
    def begin(self) -> int:
        """The ranking from which on it is timed: the last one of a transaction.

        The service saves its first chunk and every tenth behind it, and these end a transaction.
        """
        return EVERY + 1 if self is SERVICE else EVERY

    @property
    def missing(self) -> str | None:
        """Why it is not available here."""
        return None if self.framework is None else environment.problem(self.framework)

    def command(self, job: Job, folder: Path) -> Sequence[str]:
        python = sys.executable if self.framework is None else str(environment.interpreter())
        if self is SERVICE:
            path = folder / "stream-fs.toml"
            path.write_text(configuration(job), encoding="utf-8")
            return [python, "-m", "stream_fs.cli", "run", "--config", str(path)]
        path = folder / "job.json"
        job.write(path)
        return [python, "-m", f"tests.benchmarks.peers.{self.module}", str(path)]


SERVICE: Final = Program("stream-fs", "", exactly_once=True)

_AHEAD: Final = Goal("<", 1.0)
_NOT_BEHIND: Final = Goal("≤", 1.0)
_PLAIN: Final = "plain_loop"
_QUIX: Final = "quix_application"

PEERS: Final = (
    Program("Quix, exactly once", _QUIX, True, 1, "quixstreams", _AHEAD),
    Program("Quix, exactly once, in tens", _QUIX, True, EVERY, "quixstreams", _AHEAD),
    Program("Quix, at least once", _QUIX, False, EVERY, "quixstreams"),
    Program("Bytewax", "bytewax_flow", False, EVERY, "bytewax", _NOT_BEHIND),
    Program("plain loop, exactly once", _PLAIN, True, 1, None, _NOT_BEHIND),
    Program("plain loop, exactly once, in tens", _PLAIN, True, EVERY, None, _NOT_BEHIND),
    Program("plain loop, at least once", _PLAIN, False, EVERY, None, _NOT_BEHIND),
)


def configuration(job: Job) -> str:
    """The configuration of the service for a job."""
    views = "".join(f'[[views]]\nname = "{name}"\ndimension = {job.dimension}\n' for name in "ab")
    selector = "".join(f"{name} = {value}\n" for name, value in job.selector.items())
    return (
        f'[stream]\nname = "{STREAM}"\ntopics = ["{job.topic}"]\n{views}'
        f"[selector]\n{selector}[chunk]\nrecords = {CHUNK}\n"
        f"[checkpoint]\nevery_chunks = {job.every}\n"
        f'[output]\ntopic = "{job.rankings}"\n[dead_letters]\ntopic = "{job.run}.dead-letters"\n'
        f'[state]\ntopic = "{{topic}}.{job.run}.state"\n'
        f'[kafka]\nbootstrap = "{job.bootstrap}"\ngroup = "{job.run}"\n'
        "[service]\nport = 0\n"
    )


STREAM: Final = "peers"
