from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stream_fs.errors import (
    CorruptJournal,
)
from stream_fs.replay.journal import Journal, read_saved_run


@pytest.mark.parametrize(
    "notes",
    [
        {"run": [1]},
        {"outputs": {"rankings": -1}},
        {"outputs": [1]},
        {"input": [1, 2]},
        {"input": {"a": 1}},
        {"input": [1, "2", 3]},
    ],
)
def test_notes_that_nobody_has_written(tmp_path: Path, notes: Any) -> None:
    journal = Journal(tmp_path / "journal")
    journal.commit([], notes)
    journal.close()
    with pytest.raises(CorruptJournal):
        read_saved_run(Journal(tmp_path / "journal", writing=False))
