"""Known vulnerabilities of everything that constraints.txt pins (`make audit`).

Known vulnerabilities are looked up on PyPI. Where PyPI cannot be reached nothing is audited, and
the summary says so: a package without an answer is not one without vulnerabilities.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.campaign.fault_result import AddArgument, FaultResult

CONSTRAINTS: Final = Path(__file__).parents[2] / "constraints.txt"
FOUND, NOT_AUDITED = 1, 2
"""Exit codes of `make audit`."""
_COMMAND: Final = (
    *(sys.executable, "-m", "pip_audit", "--requirement", str(CONSTRAINTS)),
    *("--require-hashes", "--disable-pip", "--format", "json", "--progress-spinner", "off"),
)
_PATIENCE_SECONDS: Final = 600.0


@dataclass(frozen=True)
class Audit:
    """The number of pinned packages and of audited ones, and the vulnerabilities of these."""

    pinned: int
    audited: int
    vulnerable: tuple[str, ...]
    why_not: str

    @property
    def summary(self) -> str:
        left = self.pinned - self.audited
        if left:
            return f"NOT AUDITED: {left} of {self.pinned} packages: {self.why_not}"
        return f"{self.audited} packages audited, {len(self.vulnerable)} vulnerabilities known"


def pinned() -> int:
    """Packages in constraints.txt."""
    return len(re.findall(r"^[a-z0-9].*==", CONSTRAINTS.read_text(encoding="utf-8"), re.MULTILINE))


def audit(command: Sequence[str] = _COMMAND) -> Audit:
    """Look up known vulnerabilities."""
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Audit(pinned(), 0, (), str(error))
    try:
        document = json.loads(ended.stdout)
    except ValueError:
        last = ended.stderr.strip().rpartition("\n")[2]
        return Audit(pinned(), 0, (), last or f"pip-audit ended with {ended.returncode}")
    return read(document["dependencies"])


def read(dependencies: Sequence[Mapping[str, Any]]) -> Audit:
    """The audit from pip-audit's own document."""
    skipped = [one["skip_reason"] for one in dependencies if "skip_reason" in one]
    looked_up = [one for one in dependencies if "skip_reason" not in one]
    vulnerable = [
        f"{one['name']} {one['version']}: {known['id']}, "
        f"fixed in {', '.join(known['fix_versions']) or 'no version'}"
        for one in looked_up
        for known in one["vulns"]
    ]
    # Reasons name their packages after the colon; the part before it is the same for many.
    reasons = Counter(reason.partition(":")[0] for reason in skipped)
    why_not = "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common(3))
    return Audit(pinned(), len(looked_up), tuple(vulnerable), why_not)


def run(options: Namespace) -> Iterator[FaultResult]:  # noqa: ARG001  # it has no options
    """One result; without an audit it has the reason."""
    found = audit()
    yield FaultResult(
        "known vulnerabilities", found.pinned, shown=found.summary, problems=found.vulnerable
    )


def arguments(add: AddArgument) -> None:
    """It has no options."""


def main() -> int:
    found = audit()
    print("\n".join([found.summary, *found.vulnerable]))
    if found.vulnerable:
        return FOUND
    return 0 if found.audited == found.pinned else NOT_AUDITED


if __name__ == "__main__":
    sys.exit(main())
