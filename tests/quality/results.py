"""Measured values, and the JSON-lines file that lets a long run continue."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Key:
    """What was measured: a judge's look at a share of the features."""

    dataset: str
    removal: int
    missing: float
    method: str
    judge: str
    share: float


@dataclass(frozen=True)
class Result:
    """Agreement of the judge's clusters with the classes; means over a method's draws."""

    key: Key
    nmi: float
    ari: float
    f: float


def resume_results(path: Path) -> list[Result]:
    """Results of an earlier run; an empty list if the file is not there.

    A last line without its end was cut off when the run was stopped: it is removed from the file
    and measured again.
    """
    if not path.exists():
        return []
    content = path.read_bytes()
    complete = content[: content.rfind(b"\n") + 1]
    if complete != content:
        path.write_bytes(complete)
    return [_decode(line) for line in complete.decode().splitlines()]


def append_results(path: Path, results: Iterable[Result]) -> None:
    """Add one line per result."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(result)) + "\n" for result in results)


def _decode(line: str) -> Result:
    fields = json.loads(line)
    return Result(Key(**fields.pop("key")), **fields)
