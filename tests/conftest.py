"""Rules for every test: skips are counted where nothing may be missing, and chance is fixed in CI.

With STREAM_FS_NO_SKIP=1 a skipped test or test module fails with the reason; without
it the same test is skipped with that reason.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

NO_SKIP = os.environ.get("STREAM_FS_NO_SKIP") == "1"

# No profile measures time: a busy machine must not turn a right answer into a failure.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "ci", settings.get_profile("dev"), derandomize=True, max_examples=50, print_blob=True
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_runtest_setup() -> None:
    # A command that was run in this process has set it; tests of the log read all of it.
    logging.getLogger("stream_fs").setLevel(logging.NOTSET)


def fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    # An expected failure is reported as skipped, too, but it ran.
    if not NO_SKIP or not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    report.outcome = "failed"
    report.longrepr = f"{report.nodeid}: no test may be skipped here. {reason}"


# First, so that it wraps pytest's own handling of skips and expected failures.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    fail_if_skipped(report)
    return report
