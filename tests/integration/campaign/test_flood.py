"""The short form of the floods of bad records."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from stream_fs.broker import Broker
from tests.campaign.flood import Flood, all_floods, on

FLOODS = all_floods(Namespace(flood=200))


@pytest.mark.parametrize("flood", FLOODS[2:], ids=["skipped", "moved"])
def test_the_stream_continues_after_a_flood_of_bad_records(
    broker: Broker, tmp_path: Path, flood: Flood
) -> None:
    result = on(broker.bootstrap, tmp_path / "flood", flood)
    assert result.passed, (result.compared, result.shown, *result.problems)
    assert result.rankings is not None
    assert result.rankings.compared == 2
