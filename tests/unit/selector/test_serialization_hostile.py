"""Hostile files of models that were faults once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from stream_fs.errors import (
    IncompatibleState,
)
from stream_fs.selector import MultiViewSelector, View


def saved(path: Path, change: Callable[[dict[str, Any]], None], *, sparse: bool = False) -> None:
    """A model that waits for more rows, with something in its file changed."""
    given: Any = np.ones((5, 3))
    selector = MultiViewSelector([View("a", 3)], 2)
    selector.partial_fit({"a": scipy.sparse.csr_array(given) if sparse else given}).save(path)
    with np.load(path, allow_pickle=False) as archive:
        content = {name: archive[name] for name in archive.files}
    header = json.loads(content.pop("header").tobytes())
    change(content if sparse else header)
    content["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **content)


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header["state"].update(total=float("inf")),
        lambda header: header["state"]["params"]["views"][0].update(dimension=2**62),
        lambda header: header["state"]["params"].update(clusters=2**40),
        lambda header: header["state"]["params"].update(sketch=2**40),
        lambda header: header["state"].update(params=[]),
        lambda header: header.update(waiting=[10**15]),
        lambda header: header.update(waiting=[[]]),
    ],
    ids=["total", "dimension", "clusters", "sketch", "params", "waiting", "waiting lists"],
)
def test_a_model_file_that_asks_for_much(tmp_path: Path, change: Any) -> None:
    saved(tmp_path / "model", change)
    with pytest.raises(IncompatibleState):
        MultiViewSelector.load(tmp_path / "model")


def test_sparse_rows_that_point_elsewhere_are_refused(tmp_path: Path) -> None:
    """SciPy would read and write at any index."""
    for name, value in (
        ("indices", np.full(15, 1_000_000, np.int32)),
        ("indices", np.full(15, -5, np.int32)),
        ("indptr", np.array([0, 90, 6, 9, 12, 15], np.int32)),
    ):

        def change(content: dict[str, Any], name: str = name, value: Any = value) -> None:
            assert f"waiting.0.0.{name}" in content
            content[f"waiting.0.0.{name}"] = value

        saved(tmp_path / "model", change, sparse=True)
        with pytest.raises(IncompatibleState, match="sparse rows"):
            MultiViewSelector.load(tmp_path / "model")
