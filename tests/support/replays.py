"""Files of records and plans to replay them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stream_fs.replay.outputs import FileOutput, dead_letter_line, ranking_lines
from stream_fs.replay.run import Plan
from stream_fs.replay.sources import Source
from tests.support.simulated_process import TOPIC, records, settings

BAD = b"\x0c"


class Folder:
    """A folder with records and the outputs and checkpoint of their replay."""

    def __init__(self, path: Path, values: list[bytes] | None = None) -> None:
        path.mkdir(exist_ok=True)
        self.path = path
        self.input = path / "records.msgpack"
        self.rankings = path / "rankings.jsonl"
        self.letters = path / "letters.jsonl"
        self.checkpoint = path / "checkpoint"
        self.fill(values or VALUES)

    def fill(self, values: list[bytes]) -> None:
        self.input.write_bytes(b"".join(values))

    def plan(self, **changes: Any) -> Plan:
        """A plan with the files of the folder, and other changes."""
        chosen = changes.pop("settings", settings())
        plan: dict[str, Any] = {
            "settings": chosen,
            "topic": TOPIC,
            "sources": [Source(str(self.input), "msgpack", chosen.views, "msgpack")],
            "rankings": FileOutput(self.rankings, ranking_lines(chosen.output_format)),
            "dead_letters": FileOutput(self.letters, dead_letter_line),
            "checkpoint": self.checkpoint,
        }
        return Plan(**{**plan, **changes})

    @property
    def output(self) -> tuple[bytes, bytes]:
        return self.rankings.read_bytes(), self.letters.read_bytes()


def bad(values: list[bytes]) -> list[bytes]:
    """The values for a file: bad ones have to be MessagePack, or the rest cannot be found."""
    return [value if value != b"not a record" else BAD for value in values]


VALUES = bad(list(records(130, bad_every=9)))
"""Seven chunks and a part of the eighth, with bad records in between."""
