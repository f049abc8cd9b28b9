"""The public selector against release 0.1.0: its results, its files, and going on from those."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.compatibility import library
from tests.compatibility.comparison import differences
from tests.compatibility.formats import selector_arrays
from tests.compatibility.record import recorded

TOLERANCE = 1e-3
NAMES = sorted(recorded("selector"))


def plain(value: Any) -> Any:
    """Arrays in the place of their bytes; also those of a saved selector."""
    match value:
        case {"dtype": dtype, "shape": shape, "data": data}:
            return np.frombuffer(data, dtype).reshape(shape)
        case bytes():
            return selector_arrays(value)
        case dict():
            return {name: plain(item) for name, item in value.items()}
        case list():
            return [plain(item) for item in value]
    return value


def wrong(before: Any, now: Any) -> list[str]:
    return list(differences(plain(before), plain(now), TOLERANCE))


@pytest.mark.parametrize("name", NAMES)
def test_the_selector_finds_and_saves_what_it_did(name: str) -> None:
    recording = recorded("selector")[name]
    assert wrong(recording["result"], library.run(recording["job"])) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_saved_selector_can_be_continued(name: str) -> None:
    recording = recorded("selector")[name]
    chunks = recording["result"]["chunks"]
    for done in range(1, len(chunks)):
        job = {
            **recording["job"],
            "start": chunks[done - 1]["saved"],
            "chunks": recording["job"]["chunks"][done:],
        }
        found = library.run(job)
        assert found["text"] == chunks[done - 1]["text"]
        assert wrong(chunks[done:], found["chunks"]) == []
        assert wrong(recording["result"]["merged"], found["merged"]) == []
