"""Random numbers as pure functions of a key, the same on every machine and in every process."""

from __future__ import annotations

import hashlib

import numpy as np

from stream_fs.selector.arrays import Working


def generator(seed: int, *key: str | int) -> np.random.Generator:
    """A generator for one purpose, independent of those with any other key."""
    text = "\x1f".join([str(seed), *map(str, key)])
    return np.random.Generator(
        np.random.PCG64(int.from_bytes(hashlib.sha256(text.encode()).digest(), "little"))
    )


def signs(source: np.random.Generator, rows: int, width: int) -> Working:
    """Independent ±1 in single precision, (rows × width)."""
    bits = np.unpackbits(np.frombuffer(source.bytes((rows * width + 7) // 8), np.uint8))
    return (2 * bits[: rows * width].astype(np.float32) - 1).reshape(rows, width)
