"""The short form of the loads: a member stays in its group and within its memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from stream_fs.broker import Broker
from tests.campaign.load import run_load, slow_down
from tests.campaign.loads import Load, burst, hot, wide
from tests.support.recovery.launchers import Forked
from tests.support.recovery.prepared_stream import prepare_stream


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(partial(burst, 50_000), id="burst"),
        pytest.param(partial(hot, 12, 3), id="one-hot-partition"),
        pytest.param(partial(wide, 2), id="largest-records"),
    ],
)
def test_a_load_changes_no_published_byte(
    broker: Broker, tmp_path: Path, made: Callable[[], Load]
) -> None:
    load = made()
    result = run_load(broker, tmp_path, load, pause=0, start=Forked)
    assert result.passed, (result.compared, result.shown, *result.problems)
    if load.dimensions is not None:
        assert result.letters is not None
        assert result.letters.compared == 1


def test_a_member_whose_updates_are_slow_stays_in_the_group(broker: Broker, tmp_path: Path) -> None:
    with prepare_stream(broker, tmp_path, 40, Forked) as prepared:
        result = slow_down(prepared, 26, seconds=0.3)
    assert result.passed, (result.compared, result.shown, *result.problems)
