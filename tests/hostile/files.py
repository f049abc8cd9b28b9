"""Files of records, of arrays and of models."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from stream_fs.replay.rewriter import Rewriter
from stream_fs.replay.sources import MAX_RECORD_BYTES, array_rows
from stream_fs.selector import MultiViewSelector, View
from stream_fs.wire.records.json_reader import json_lines
from stream_fs.wire.records.msgpack_reader import msgpack_objects
from tests.hostile import records
from tests.hostile.archives import ArchiveTarget
from tests.hostile.checkpoints import InFile
from tests.hostile.target import Target

VIEWS = records.VIEWS


def lines(data: bytes) -> None:
    rewriter = Rewriter(VIEWS, "json", "msgpack")
    for value, _ in json_lines(io.BytesIO(data), "file", MAX_RECORD_BYTES):
        rewriter(value)


def packed(data: bytes) -> None:
    rewriter = Rewriter(VIEWS, "msgpack", "json")
    for value, _ in msgpack_objects(io.BytesIO(data), "file", MAX_RECORD_BYTES):
        rewriter(value)


class Arrays(InFile):
    """Decoders of archives of arrays."""

    def records(self, data: bytes) -> None:
        for _ in array_rows(self.path(data), VIEWS, "msgpack"):
            pass

    def model(self, data: bytes) -> None:
        selector = MultiViewSelector.load(self.path(data))
        if selector.state.chunk:
            selector.ranking()
        else:
            selector.partial_fit({"a": np.ones((50, 3)), "b": np.ones((50, 4))})


def archive(path: Path, compressed: bool, **arrays: Any) -> bytes:
    (np.savez_compressed if compressed else np.savez)(path, allow_pickle=False, **arrays)
    return path.read_bytes()


def saved(path: Path) -> Iterator[bytes]:
    """A model with a state, and models before their first chunk, with dense and sparse rows."""
    views = [View("a", 3), View("b", 4)]
    chance = np.random.default_rng(1)
    dense = {"a": chance.random((50, 3)), "b": chance.random((50, 4))}
    sparse = {"a": scipy.sparse.csr_array(dense["a"][:5]), "b": dense["b"][:5]}
    few = {name: array[:7] for name, array in dense.items()}
    for inputs in (dense, sparse, few):
        MultiViewSelector(views, 2, sketch=3).partial_fit(inputs).save(path)
        yield path.read_bytes()


def targets(folder: Path) -> Iterator[Target]:
    files = Arrays(folder)
    in_json, in_msgpack = records.records("json"), records.records("msgpack")
    yield Target(
        name="JSON lines",
        attempt=lines,
        seeds=[b"\n".join(in_json), b"\r\n".join(in_json)],
        weight=60,
    )
    yield Target(
        name="MessagePack file",
        attempt=packed,
        seeds=[b"".join(in_msgpack), in_msgpack[3]],
        weight=1,
    )
    path = folder / "arrays.npz"
    content: dict[str, Any] = {
        "a": np.ones((5, 3), np.float32),
        "b": np.asfortranarray(np.ones((5, 4))),
        "c": np.full((5, 2), np.nan),
    }
    arrays = [
        archive(path, False, **content),
        archive(path, True, **content),
        archive(path, False, view_0=content["a"], view_1=content["b"], view_2=np.ones((5, 2), int)),
    ]
    yield Target(name="arrays", attempt=files.records, seeds=arrays, weight=1)
    yield ArchiveTarget(name="arrays, sealed", attempt=files.records, seeds=arrays, weight=1)
    models = list(saved(folder / "model.npz"))
    yield Target(name="model file", attempt=files.model, seeds=models, weight=1)
    yield ArchiveTarget(name="model file, sealed", attempt=files.model, seeds=models, weight=1)
