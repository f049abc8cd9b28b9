"""Runs jobs on the public selector: ``python library.py JOBS RESULTS``, on any release.

It uses only `MultiViewSelector`, `View`, `merge` and `rank`, which users import from
`stream_fs.selector`, so that one file serves every release. A job is plain data:

    views        name, dimension and transform of each
    clusters, parameters
    chunks       by view, a matrix: shape, bytes of float32 or float64, whether it is sparse
    start        a saved selector to continue with; none: a new one
    other        a saved selector to merge with in the end; none: no merge
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import scipy.sparse

from stream_fs.selector import MultiViewSelector, View, merge, rank

TOP = 0.4


def run(job: Mapping[str, Any]) -> dict[str, Any]:
    """After every chunk, the saved selector and its rankings; at the end the merged ranking."""
    if job["start"] is None:
        views = [View(*view) for view in job["views"]]
        selector = MultiViewSelector(views, job["clusters"], **job["parameters"])
    else:
        selector = loaded(job["start"])
    found: dict[str, Any] = {"text": repr(selector), "chunks": []}
    for chunk in job["chunks"]:
        selector.partial_fit({name: matrix(given) for name, given in chunk.items()})
        step: dict[str, Any] = {"saved": saved(selector), "text": repr(selector)}
        if selector.state.chunk:
            support = selector.get_support(TOP)
            step |= {
                "scores": {name: array(values) for name, values in selector.scores().items()},
                "order": {name: array(values) for name, values in selector.get_order().items()},
                "support": {name: array(values) for name, values in support.items()},
                "ranking": plain(astuple(selector.ranking())),
            }
        found["chunks"].append(step)
    if job["other"] is not None:
        other = loaded(job["other"])
        found["merged"] = plain(astuple(rank(merge([selector.state, other.state]))))
    return found


def matrix(given: Mapping[str, Any]) -> Any:
    """The rows of a view; a missing one is all NaN, or empty where they are sparse."""
    rows = np.frombuffer(given["data"], given["dtype"]).reshape(given["shape"]).copy()
    return scipy.sparse.csr_array(rows) if given["sparse"] else rows


def array(values: Any) -> dict[str, Any]:
    """An array as plain data."""
    values = np.asarray(values)
    return {"dtype": values.dtype.str, "shape": list(values.shape), "data": values.tobytes()}


def plain(value: Any) -> Any:
    """Arrays and tuples as plain data."""
    if isinstance(value, np.ndarray):
        return array(value)
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def saved(selector: MultiViewSelector) -> bytes:
    """The file of a saved selector."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "selector"
        selector.save(path)
        return path.read_bytes()


def loaded(content: bytes) -> MultiViewSelector:
    """The inverse of `saved`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "selector"
        path.write_bytes(content)
        return MultiViewSelector.load(path)


def main(jobs: str, results: str) -> None:
    """Run every job of a file, and write their results into another."""
    given = msgpack.unpackb(Path(jobs).read_bytes())
    Path(results).write_bytes(msgpack.packb([run(job) for job in given]))


if __name__ == "__main__":
    main(*sys.argv[1:])
