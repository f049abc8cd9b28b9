"""``python -m tests.hostile``: hostile inputs for every decoder, and what they did."""

from __future__ import annotations

import argparse
import sys

from tests.hostile.runner import run


def main() -> int:
    """Exit code 1 where there are faults."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000, help="over all decoders")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="processes at a time")
    arguments = parser.parse_args()
    faults = 0
    for name, findings in run(arguments.inputs, arguments.seed, arguments.workers):
        print(f"{name}: {findings.accepted} accepted, {findings.rejected} rejected")
        for fault in findings.faults:
            print(f"  {fault}")
        faults += len(findings.faults)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
