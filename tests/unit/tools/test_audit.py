"""A failed audit is reported differently from one without findings."""

from __future__ import annotations

import sys

import pytest

from tests.campaign.audit import Audit, audit, pinned, read

KNOWN = {"id": "CVE-2024-1", "fix_versions": ["1.1"], "aliases": [], "description": ""}


def test_pinned_packages_are_counted() -> None:
    assert pinned() > 40


def test_known_vulnerabilities_are_reported() -> None:
    found = read([{"name": "one", "version": "1.0", "vulns": [KNOWN]}])
    assert found.vulnerable == ("one 1.0: CVE-2024-1, fixed in 1.1",)
    assert found.audited == 1


def test_skipped_packages_are_not_audited() -> None:
    found = read([{"name": "one", "skip_reason": "not found on PyPI: one (1.0)"}])
    assert found.audited == 0
    assert found.summary == f"NOT AUDITED: {pinned()} of {pinned()} packages: not found on PyPI (1)"


def test_the_summary_of_a_complete_audit_has_its_counts() -> None:
    assert Audit(3, 3, (), "").summary == "3 packages audited, 0 vulnerabilities known"


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("import sys; sys.exit('no route to host')", "no route to host"),
        ("import sys; sys.exit(3)", "pip-audit ended with 3"),
    ],
)
def test_a_failed_program_audits_nothing(program: str, why: str) -> None:
    found = audit([sys.executable, "-c", program])
    assert found.audited == 0
    assert found.summary.startswith("NOT AUDITED: ")
    assert found.summary.endswith(why)


def test_without_the_program_nothing_is_audited() -> None:
    assert "NOT AUDITED" in audit(["/nowhere/pip-audit"]).summary
