"""A stream to look at: handwritten digits, seen in three ways, some of them missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from sklearn.datasets import load_digits

from stream_fs.wire.records.encoder import encode_record

CHUNK: Final = 200
SIDE: Final = 8
VIEWS: Final[list[dict[str, Any]]] = [
    {"name": "pixels", "dimension": 64, "shape": [SIDE, SIDE]},
    {"name": "fourier", "dimension": 40, "shape": [SIDE, 5]},
    {
        "name": "profile",
        "dimension": 16,
        "names": [f"{line} {number}" for line in ("row", "column") for number in range(SIDE)],
    },
]
SECTIONS: Final[dict[str, Any]] = {
    "views": VIEWS,
    "selector": {"clusters": 10, "max_iterations": 20},
    "chunk": {"records": CHUNK},
    "output": {"top": 0.25},
    "service": {"port": 0, "grace_seconds": 5.0},
}
_MISSING: Final = {"pixels": 0.1, "fourier": 0.3, "profile": 0.5}


def records(count: int, seed: int = 0, bad: float = 0.0) -> Iterator[bytes]:
    """Digits drawn at random, each a little different every time; a share of them is unusable."""
    rng = np.random.default_rng(seed)
    images = load_digits().images
    for number in range(count):
        if rng.random() < bad:
            yield _bad(number)
            continue
        image = images[rng.integers(len(images))] + rng.uniform(0, 1.5, (SIDE, SIDE))
        views = {
            "pixels": image.ravel(),
            "fourier": np.log1p(np.abs(np.fft.rfft2(image))).ravel(),
            "profile": np.concatenate([image.sum(axis=1), image.sum(axis=0)]),
        }
        there = [name for name in views if rng.random() >= _MISSING[name]] or ["pixels"]
        yield encode_record({name: views[name].astype(np.float32) for name in there})


def _bad(number: int) -> bytes:
    """One of the ways in which a producer may be wrong."""
    ways = [
        b"not a record",
        encode_record({"pixels": np.ones(63, np.float32)}),
        encode_record({"profile": np.full(16, np.nan, np.float32)}),
    ]
    return ways[number % len(ways)]
