"""The growth of a decoder's CPU time: inputs of n and of 4n bytes.

Only in the campaign, and only for inputs that take long enough for a comparison.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from stream_fs.errors import StreamFsError
from tests.hostile.registry import all_targets
from tests.hostile.target import Target

SIZES: Final = (50_000, 200_000)
ROUNDS: Final = 5
MIN_SECONDS: Final = 0.01
"""For the larger input; shorter times are not compared."""
MAX_RATIO: Final = 10.0
"""Ratio of the times for four times the bytes: linear is 4, quadratic 16."""

Family = Callable[[int], bytes]


class Growth(NamedTuple):
    """Times of one target for two inputs of one family."""

    target: str
    family: str
    small: float
    large: float

    @property
    def faults(self) -> list[str]:
        if self.large < MIN_SECONDS or self.large <= MAX_RATIO * self.small:
            return []
        times = f"{self.small:.3f} s, {self.large:.3f} s"
        return [f"{self.target}, {self.family} of {SIZES} bytes: {times}"]


def _filled(piece: bytes, before: bytes = b"", after: bytes = b"") -> Family:
    return lambda size: before + piece * (size // len(piece)) + after


def _repeated(seed: bytes) -> Family:
    return lambda size: (seed * (size // len(seed) + 1))[:size]


FAMILIES: Final[Mapping[str, Family]] = {
    "zeros": _filled(b"\x00"),
    "lists in lists": _filled(b"\x91"),
    "long lists in lists": _filled(b"\xdd\x00\x10\x00\x00"),
    "empty maps in a list": lambda size: b"\xdd" + size.to_bytes(4, "big") + b"\x80" * size,
    "views of a record": lambda size: (
        b"\x82\xa1v\x01\xa5views\xdf" + (size // 3).to_bytes(4, "big") + b"\xa1a\xc0" * (size // 3)
    ),
    "brackets": _filled(b"["),
    "digits": _filled(b"1"),
    "digits of a value": _filled(b"1", b'{"v":', b"}"),
    "a long text": _filled(b"a", b'{"v":1,"id":"', b'"}'),
    "escapes": _filled(b"\\u0000", b'{"v":1,"id":"', b'"}'),
    "the same key": _filled(b'"v":1,', b"{", b'"w":1}'),
    "a list of lists": _filled(b"[],", b"[", b"1]"),
    "empty lines": _filled(b"\n"),
    "keys of a table": lambda size: b"".join(b"k%d = 1\n" % n for n in range(size // 10)),
    "tables": lambda size: b"".join(b"[t%d]\n" % n for n in range(size // 8)),
    "names in a list": _filled(b'"name", ', b"[[views]]\nnames = [", b"]\n"),
}


def growths(folder: Path) -> Iterator[Growth]:
    """Of every target, with every family and with its own seeds repeated.

    Existing objects are hidden from the garbage collector: a collection looks through all of them,
    which costs the same for any length of the input.
    """
    targets = all_targets(folder)
    gc.collect()
    gc.freeze()
    try:
        yield from _growths(targets.values())
    finally:
        gc.unfreeze()


def _growths(targets: Iterable[Target]) -> Iterator[Growth]:
    for target in targets:
        families = dict(FAMILIES)
        families |= {f"seed {n}": _repeated(seed) for n, seed in enumerate(target.seeds[:4])}
        for name, family in families.items():
            small, large = (_seconds(target, family(size)) for size in SIZES)
            yield Growth(target.name, name, small, large)


def _seconds(target: Target, data: bytes) -> float:
    """Least CPU seconds of a few rounds: a busy machine only makes them longer."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        with contextlib.suppress(StreamFsError):
            target.attempt(data)
        best = min(best, time.process_time() - began)
        if best > 1.0:
            break
    return best
