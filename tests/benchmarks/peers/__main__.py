"""`python -m tests.benchmarks.peers [--turns N] [--case N ...] [--peer NAME ...]`: the tables.

With `--restart` nothing is timed: every program is killed half way and must continue.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from stream_fs.broker import running_broker
from tests.benchmarks.measure import Comparison
from tests.benchmarks.peers.catalogue import PEERS
from tests.benchmarks.peers.measurement import CASES, SMALL, measure, restarts
from tests.support.markdown_table import aligned, comparison_row

TITLES = ["peer", "records", "ours s", "theirs s", "ratio", "quartiles", "goal", ""]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.peers")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--case", type=int, nargs="*", choices=range(len(CASES)), help="not all")
    parser.add_argument("--peer", nargs="*", choices=[peer.name for peer in PEERS], help="not all")
    parser.add_argument(
        "--restart", action="store_true", help="kill them, and check that they continue"
    )
    options = parser.parse_args(arguments)
    asked = [peer for peer in PEERS if options.peer is None or peer.name in options.peer]
    missing = {peer.name: reason for peer in asked if (reason := peer.missing) is not None}
    there = [peer for peer in asked if peer.name not in missing]
    cases = [case for n, case in enumerate(CASES) if options.case is None or n in options.case]
    if options.restart:
        with running_broker() as broker:
            restarts(broker.bootstrap, SMALL, there)
        return 0
    wall: list[Comparison] = []
    processors: list[Comparison] = []
    with running_broker() as broker:
        for case in cases:
            results = measure(broker.bootstrap, case, there, options.turns)
            wall += results.comparisons(there)
            processors += results.processors(there)
    for heading, found in (("By the clock", wall), ("By the time of processors", processors)):
        print(f"\n## {heading}\n")
        print("\n".join(aligned(TITLES, [comparison_row(comparison) for comparison in found])))
    for name, reason in missing.items():
        print(f"\n{name}: not available ({reason})")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
