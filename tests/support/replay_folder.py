"""A folder with everything that `stream-fs replay` needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from stream_fs.wire import encode_record
from tests.support.configurations import LEAST


class ReplayFolder:
    """A folder with a configuration and records, and the command that replays them."""

    def __init__(self, folder: Path, records: int = 200) -> None:
        folder.mkdir(exist_ok=True)
        self.config = folder / "stream.toml"
        quick = LEAST.replace("clusters = 3", "clusters = 3\nmax_iterations = 10")
        self.config.write_text(quick + "[chunk]\nrecords = 20\n[checkpoint]\nevery_chunks = 4\n")
        self.input = folder / "records.msgpack"
        self.rankings = folder / "rankings.jsonl"
        self.letters = folder / "letters.jsonl"
        self.checkpoint = folder / "checkpoint"
        self.input.write_bytes(b"".join(values(records)))

    def command(self, *more: str, checkpoint: bool = True) -> list[str]:
        resumable = ["--checkpoint", str(self.checkpoint)] if checkpoint else []
        outputs = ["--rankings", str(self.rankings), "--dead-letters", str(self.letters)]
        return [
            "replay",
            "--config",
            str(self.config),
            str(self.input),
            *outputs,
            *resumable,
            *more,
        ]

    @property
    def output(self) -> tuple[bytes, bytes]:
        return self.rankings.read_bytes(), self.letters.read_bytes()


def values(count: int) -> Iterator[bytes]:
    rng = np.random.default_rng(0)
    for number in range(count):
        if number % 11 == 10:
            yield b"\x81\xa1v\x02"  # another version
        group = int(rng.integers(3))
        fourier, pixels = rng.random(4) + group, rng.random(6) - group
        yield encode_record({"fourier": fourier, "pixels": pixels if number % 2 else None})
