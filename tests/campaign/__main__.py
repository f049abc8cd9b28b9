"""``python -m tests.campaign [--parts NAME …]``: injects faults into the service, prints a table.

Exit code 1 when anything was lost, duplicated or changed, or a part failed.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import cast

from tests.campaign.fault_result import FaultResult, Part, results_of, table

PARTS = (
    "kills", "merges", "processes", "cluster", "network", "membership", "partitions",
    "load", "hostile", "flood", "security", "audit", "endurance", "soak",
)  # fmt: skip
"""Modules of this package, in their order."""


def main() -> int:
    parts = {name: cast(Part, import_module(f"tests.campaign.{name}")) for name in PARTS}
    options = parse(parts)
    results: list[tuple[str, FaultResult]] = []
    for name in options.parts:
        for result in results_of(parts[name], options):
            results.append((name, result))
            # Printed at once, so that an interrupted campaign has shown its problems.
            lines = [" ".join(result.cells(name)), *result.problems]
            print("\n".join(lines), file=sys.stderr, flush=True)
    print("\n".join(table(results)))
    return 0 if all(result.passed or result.not_run for _, result in results) else 1


def parse(parts: dict[str, Part]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaign",
        description=__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "--parts", nargs="+", choices=PARTS, default=PARTS, metavar="NAME", help="parts to run"
    )
    parser.add_argument("--seed", type=int, default=0, help="of random numbers")
    for name, part in parts.items():
        part.arguments(parser.add_argument_group(name).add_argument)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
