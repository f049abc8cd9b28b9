"""The speed of decoding records: `python -m tests.benchmarks.wire`.

Records of three packed float32 views, by size and share of missing views, from a list of values to

    join       concatenated bytes, and one array over them: no structure, no views, no checks
    rows       one array with a row per record, the floats at a known offset, no checks
    unpackb    the objects that msgpack returns: no arrays
    loop       the usual loop: unpackb, then the row of each view copied into an array per view
    decode     a batch, with all checks

in thousands of records per second of processor time: the best of many rounds, in which the
contenders alternate. New memory can cost more than all else, so the process keeps freed memory, as
the service does; --give-back returns it to the system.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgpack
import numpy as np

from stream_fs.service.process.memory import keep_freed_memory
from stream_fs.wire import DeclaredView, RecordDecoder, encode_record

NAMES = ("fourier", "pixels", "shape")
SIZES = {100: 2000, 1_000: 1000, 10_000: 500, 100_000: 50}
"""Bytes of a record with all views, and the records per batch."""
CONTENDERS = ("join", "rows", "unpackb", "loop", "decode")


def values_of(size: int, count: int, missing: float) -> tuple[list[DeclaredView], list[bytes]]:
    """Records of about this size: ids differ in length, missing views are null."""
    rng = np.random.default_rng(3)
    dimension = (size - len(encode_record(dict.fromkeys(NAMES), "r-100"))) // 12
    values = []
    for number in range(count):
        absent = rng.random(len(NAMES)) < missing
        absent[number % len(NAMES)] = False
        row = {n: None if a else rng.random(dimension) for n, a in zip(NAMES, absent, strict=True)}
        values.append(encode_record(row, f"r-{number}"))
    return [DeclaredView(name, dimension) for name in NAMES], values


def join(values: Sequence[bytes]) -> Any:
    return np.frombuffer(b"".join(values), np.uint8)


def rows(values: Sequence[bytes], width: int) -> Any:
    out = np.empty((len(values), width), "<f4")
    for row, value in enumerate(values):
        floats = np.frombuffer(value, "<f4", (len(value) - 40) // 4, 30)
        out[row, : len(floats)] = floats
    return out


def loop(values: Sequence[bytes], views: Sequence[DeclaredView]) -> Any:
    out = {view.name: np.empty((len(values), view.dimension), "<f4") for view in views}
    filled = dict.fromkeys(out, 0)
    for value in values:
        for name, floats in msgpack.unpackb(value)["views"].items():
            if floats is not None:
                out[name][filled[name]] = np.frombuffer(floats, "<f4")
                filled[name] += 1
    return out


def best_rates(runners: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Least processor seconds of each contender."""
    best = dict.fromkeys(runners, float("inf"))
    for _ in range(rounds):
        for name, run in runners.items():
            begin = time.thread_time()
            result = run()
            best[name] = min(best[name], time.thread_time() - begin)
            del result
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description="The speed of decoding records.")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--give-back", action="store_true", help="return freed memory")
    options = parser.parse_args()
    if not options.give_back:
        keep_freed_memory()
    print("  bytes  missing", *(f"{name:>9}" for name in CONTENDERS))
    for size, count in SIZES.items():
        for missing in (0.0, 0.5):
            measure(size, count, missing, options.rounds)


def measure(size: int, count: int, missing: float, rounds: int) -> None:
    views, values = values_of(size, count, missing)
    decoder = RecordDecoder(views)
    if len(decoder.decode(values)) != count:
        raise SystemExit("these records cannot be decoded")
    width = sum(view.dimension for view in views) + 10
    best = best_rates(
        {
            "join": lambda: join(values),
            "rows": lambda: rows(values, width),
            "unpackb": lambda: [msgpack.unpackb(value) for value in values],
            "loop": lambda: loop(values, views),
            "decode": lambda: decoder.decode(values),
        },
        rounds,
    )
    print(
        f"{size:>7}{missing:>9.0%}", *(f"{count / best[name] / 1e3:>9.0f}" for name in CONTENDERS)
    )


if __name__ == "__main__":
    main()
