"""A flood of bad records, and the ways out of it, in short."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from stream_fs.broker import Broker
from tests.campaign.flood import Flood, floods, on

FLOODS = floods(Namespace(flood=200))


@pytest.mark.parametrize("flood", FLOODS[2:], ids=["skipped", "moved"])
def test_it_is_survived(broker: Broker, tmp_path: Path, flood: Flood) -> None:
    account = on(broker.bootstrap, tmp_path / "flood", flood)
    assert account.right, (account.compared, account.shown, *account.problems)
    assert account.rankings is not None
    assert account.rankings.compared == 2
