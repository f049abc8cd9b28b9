"""Cases as files for `stream-fs replay`, which goes through them in two stages.

The first replay finds the beginning of the file, the second one the whole file, so the second goes
on from a checkpoint of which nothing has to be computed again.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from tests.compatibility.cases import CASES, RANKINGS, Case
from tests.compatibility.formats import cut_journal, journal
from tests.compatibility.streams import DENSE, rows

Kind = Literal["jsonl", "msgpack", "npz"]
Command = Callable[[Sequence[str]], None]
"""Runs `stream-fs` with arguments; raises where it ends with another code than 0."""

KINDS: Final[Mapping[str, Kind]] = {
    "default": "msgpack",
    "default-named": "jsonl",
    "default-decay": "npz",
    "default-sparse": "msgpack",
    "paper": "npz",
    "classical": "jsonl",
}
"""Cases that are replayed, and from what kind of file."""
_RECORDS: Final = 235
_FIRST: Final = 0.55


class Recorded(NamedTuple):
    """Files of a replay; `stages` says how many transactions there were after each."""

    rankings: bytes
    letters: bytes
    checkpoint: bytes
    stages: list[int]


def replayed_cases() -> list[Case]:
    """Those of `KINDS`."""
    return [case for case in CASES if case.name in KINDS]


def stages(case: Case, seed: int = 0) -> list[bytes]:
    """The file of each stage."""
    kind = KINDS[case.name]
    if kind == "npz":
        return [_archive(case, seed, count) for count in (round(_FIRST * _RECORDS), _RECORDS)]
    end = b"\n" if kind == "jsonl" else b""
    values = [message.value or b"" for message in case.inputs(seed, framed=True)[0]]
    whole = [value + end for value in values]
    return [b"".join(whole[: round(_FIRST * len(whole))]), b"".join(whole)]


def _archive(case: Case, seed: int, count: int) -> bytes:
    """Rows as arrays; what is missing is NaN, and one row has too large a number."""
    found = list(rows(case.encoding, 10 * seed, count))
    arrays = {
        name: np.array([row[name] or [np.nan] * width for row in found])
        for name, width in DENSE.items()
    }
    arrays["shape"][17] = 1e300
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **dict(arrays))
    return file.getvalue()


class Folder:
    """The files of one replay."""

    def __init__(self, path: Path, name: str, config: str) -> None:
        """`name` is that of the case."""
        path.mkdir(parents=True, exist_ok=True)
        self._kind = KINDS[name]
        self.path = path
        self.config = path / "golden.toml"
        self.config.write_text(config, encoding="utf-8")
        self._stages: list[int] = []

    def file(self, name: str) -> Path:
        """One of the outputs."""
        return self.path / name

    def arguments(self, content: bytes, *more: str) -> list[str]:
        """The command that replays this content."""
        source = self.path / f"records.{self._kind}"
        source.write_bytes(content)
        outputs = [f"--{name}={self.file(name)}" for name in ("rankings", "checkpoint")]
        return [
            "replay",
            f"--config={self.config}",
            "--first-timestamp=1000",
            "--timestamp-step=10",
            f"--dead-letters={self.file('letters')}",
            *outputs,
            *more,
            str(source),
        ]

    def replay(self, command: Command, contents: Sequence[bytes]) -> Recorded:
        """All stages, in their order."""
        for content in contents:
            command(self.arguments(content))
            self._stages.append(len(journal(self.file("checkpoint").read_bytes())))
        return self.found

    @property
    def found(self) -> Recorded:
        """What there is."""
        rankings, letters, checkpoint = (
            self.file(name).read_bytes() for name in ("rankings", "letters", "checkpoint")
        )
        return Recorded(rankings, letters, checkpoint, self._stages)

    def lay(self, recorded: Recorded, transactions: int) -> list[int]:
        """Put the files there as they were after so many transactions; the stages since then.

        What was written last is torn, as after a crash.
        """
        checkpoint = cut_journal(recorded.checkpoint, transactions)
        lengths: dict[str, Any] = {}
        for transaction in journal(checkpoint):
            lengths = transaction["notes"].get("outputs", lengths)
        torn = b'{"torn'
        self.file("checkpoint").write_bytes(checkpoint + b"\x40\x00")
        for name, topic, content in (
            ("rankings", RANKINGS, recorded.rankings),
            ("letters", "dead", recorded.letters),
        ):
            self.file(name).write_bytes(content[: lengths.get(topic, 0)] + torn)
        self._stages = [n for n in recorded.stages if n <= transactions]
        return [n for n in recorded.stages if n > transactions]
