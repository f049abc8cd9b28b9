"""``python -m tests.campaign [--parts NAME …]``: attacks the service, and prints what became of it.

Exit code 1 when anything was lost, duplicated or changed, or a part broke off.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import cast

from tests.campaign.fault_result import Account, Part, accounts_of, table

PARTS = (
    "kills", "merges", "processes", "cluster", "network", "membership", "partitions",
    "load", "hostile", "flood", "security", "audit", "endurance", "soak",
)  # fmt: skip
"""Modules of this package, in their order."""


def main() -> int:
    parts = {name: cast(Part, import_module(f"tests.campaign.{name}")) for name in PARTS}
    options = parse(parts)
    accounts: list[tuple[str, Account]] = []
    for name in options.parts:
        for account in accounts_of(parts[name], options):
            accounts.append((name, account))
            # Problems at once: a campaign that is broken off should not take them with it.
            said = [" ".join(account.cells(name)), *account.problems]
            print("\n".join(said), file=sys.stderr, flush=True)
    print("\n".join(table(accounts)))
    return 0 if all(account.right or account.not_run for _, account in accounts) else 1


def parse(parts: dict[str, Part]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaign",
        description=__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "--parts", nargs="+", choices=PARTS, default=PARTS, metavar="NAME", help="parts to run"
    )
    parser.add_argument("--seed", type=int, default=0, help="of what chance decides")
    for name, part in parts.items():
        part.arguments(parser.add_argument_group(name).add_argument)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
