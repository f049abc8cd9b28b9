"""An audit that could not be made does not look like one that found nothing."""

from __future__ import annotations

import sys

import pytest

from tests.campaign.audit import Audit, audit, pinned, read

KNOWN = {"id": "CVE-2024-1", "fix_versions": ["1.1"], "aliases": [], "description": ""}


def test_what_is_pinned_is_counted() -> None:
    assert pinned() > 40


def test_what_is_known_is_told() -> None:
    found = read([{"name": "one", "version": "1.0", "vulns": [KNOWN]}])
    assert found.vulnerable == ("one 1.0: CVE-2024-1, mended in 1.1",)
    assert found.audited == 1


def test_what_was_skipped_is_not_audited() -> None:
    found = read([{"name": "one", "skip_reason": "not found on PyPI: one (1.0)"}])
    assert found.audited == 0
    assert found.told == f"NOT AUDITED: {pinned()} of {pinned()} packages: not found on PyPI (1)"


def test_all_audited_is_told_so() -> None:
    assert Audit(3, 3, (), "").told == "3 packages audited, 0 vulnerabilities known"


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("import sys; sys.exit('no route to host')", "no route to host"),
        ("import sys; sys.exit(3)", "pip-audit ended with 3"),
    ],
)
def test_a_program_that_fails_has_audited_nothing(program: str, why: str) -> None:
    found = audit([sys.executable, "-c", program])
    assert found.audited == 0
    assert found.told.startswith("NOT AUDITED: ")
    assert found.told.endswith(why)


def test_without_the_program_nothing_is_audited() -> None:
    assert "NOT AUDITED" in audit(["/nowhere/pip-audit"]).told
