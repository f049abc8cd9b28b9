"""Jobs for `library`: the public selector on arrays, dense and sparse, in either precision."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tests.compatibility.streams import CLUSTERS, Encoding, dimensions, rows

Job = dict[str, Any]

PRESETS: Final = ("default", "paper", "classical")
_ROWS: Final = (24, 30, 26, 31, 25)
"""Of the chunks; a first one is kept back until there are enough."""


def selector_jobs(seed: int = 0) -> dict[str, Job]:
    """By name; every preset, precision, and kind of matrix."""
    return {
        f"{preset} {kind} {'sparse' if sparse else 'dense'}": _job(preset, kind, sparse, seed)
        for preset in PRESETS
        for kind in ("float32", "float64")
        for sparse in (False, True)
    }


def _job(preset: str, kind: str, sparse: bool, seed: int) -> Job:
    encoding: Encoding = "sparse" if sparse else "packed32"
    transform = "unit" if sparse else "minmax" if preset == "default" else "none"
    parameters: dict[str, Any] = {"preset": preset, "seed": 3, "max_iterations": 20}
    if preset == "default":
        parameters |= {"sketch": 4, "first_rows": 15}
    else:
        parameters |= {"first_rows": 10}
    found = list(rows(encoding, 100 + seed, sum(_ROWS)))
    starts = np.cumsum([0, *_ROWS])
    return {
        "views": [[name, width, transform] for name, width in dimensions(encoding).items()],
        "clusters": CLUSTERS,
        "parameters": parameters,
        "chunks": [
            _chunk(found[start : start + size], encoding, kind)
            for start, size in zip(starts[:-1], _ROWS, strict=True)
        ],
        "start": None,
        "other": None,
    }


def _chunk(found: list[dict[str, Any]], encoding: Encoding, kind: str) -> dict[str, Any]:
    chunk = {}
    for name, width in dimensions(encoding).items():
        sparse = name in ("words", "links")
        # An all-zero sparse row is a row; one that is missing is missing from a dense view alone.
        missing = [0.0 if sparse else np.nan] * width
        data = np.array([row[name] or missing for row in found], kind)
        chunk[name] = {
            "dtype": data.dtype.str,
            "shape": list(data.shape),
            "data": data.tobytes(),
            "sparse": sparse,
        }
    return chunk
