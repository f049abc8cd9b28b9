"""Compares an earlier release with this code, byte by byte, on this machine.

    python -m tests.compatibility.compare OLD_CHECKOUT [--sections …] [--cores …] [--seed N]

OLD_CHECKOUT is a checkout of release 0.1.0 with its `.venv`. Every case is run by both sides, each
in processes of its own interpreter; what is published and saved must be the same bytes, apart from
what `formats` declares. Both are killed between steps, and each continues states that the other
has left. Prints a table; the exit code is 1 where there is a difference.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.compatibility.releases import New, Old, Runner
from tests.compatibility.sections import Finding, Options, kafka, pipeline, replay, selector

Section = Callable[[Runner, Runner, Options], Iterator[Finding]]

SECTIONS: dict[str, Section] = {
    "pipeline": pipeline.compare,
    "selector": selector.compare,
    "replay": replay.compare,
    "kafka": kafka.compare,
}
CORES = ("compiled", "numpy")


def main(arguments: list[str] | None = None) -> int:
    """Run the sections, and print what they find."""
    parsed = _parsed(arguments)
    options = Options(parsed.seed, parsed.cases)
    old, new = Old(parsed.checkout), New()
    print(f"old: release {old.version()} in {old.checkout}\nnew: release {new.version()}")
    print(f"{'section':10}{'core':10}{'case':34}{'runs':>6}{'bytes':>12}{'seconds':>9}  result")
    wrong = 0
    for name in parsed.sections:
        for core in parsed.cores if name != "kafka" else parsed.cores[:1]:
            began = time.monotonic()
            for found in SECTIONS[name](Old(parsed.checkout, core), New(core), options):
                seconds, began = time.monotonic() - began, time.monotonic()
                verdict = f"{len(found.wrong)} DIFFERENCES" if found.wrong else "same"
                print(
                    f"{name:10}{core:10}{found.case:34}{found.runs:6}{found.bytes:12}"
                    f"{seconds:9.1f}  {verdict}",
                    *(f"    {line}" for line in found.wrong),
                    sep="\n",
                    flush=True,
                )
                wrong += bool(found.wrong)
    print("different" if wrong else "the same bytes")
    return 1 if wrong else 0


def _parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.compatibility.compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )

    def several(allowed: tuple[str, ...]) -> Callable[[str], list[str]]:
        def names(text: str) -> list[str]:
            found = text.split(",")
            if unknown := set(found) - set(allowed):
                raise argparse.ArgumentTypeError(f"{sorted(unknown)} are not of {allowed}")
            return found

        return names

    parser.add_argument("checkout", type=Path, metavar="OLD_CHECKOUT")
    sections = tuple(SECTIONS)
    parser.add_argument("--sections", type=several(sections), default=list(sections))
    parser.add_argument("--cores", type=several(CORES), default=list(CORES))
    parser.add_argument("--cases", default="", help="only those with this in their names")
    parser.add_argument("--seed", type=int, default=0, help="of the streams")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
