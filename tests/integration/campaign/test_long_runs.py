"""A process does not grow; `python -m tests.campaign.long_runs` runs it for longer."""

from __future__ import annotations

from pathlib import Path

from stream_fs.broker import Broker
from tests.campaign.long_runs import measure_long_run, measure_rebalance
from tests.campaign.resource_usage import Flatness, Usage, lasting


def test_memory_threads_and_files_do_not_grow(broker: Broker, tmp_path: Path) -> None:
    found = measure_long_run(broker, tmp_path, chunks=200, samples=16)
    assert found.growth < 8
    assert found.more_threads <= 0
    assert found.more_files <= 0


def test_a_partition_has_series_while_it_is_owned(broker: Broker, tmp_path: Path) -> None:
    found = measure_rebalance(broker, tmp_path)
    assert lasting(found.again) == lasting(found.alone) > lasting(found.shared)
    partitions = [{n for n in "01" if f'partition="{n}"' in "".join(s)} for s in found]
    assert [len(numbers) for numbers in partitions] == [2, 1, 2]


def test_growth_is_detected() -> None:
    growing = Flatness([Usage(100 + 0.5 * n, 10 + n // 4, 20 + n // 4) for n in range(16)])
    assert growing.growth == 4
    assert growing.slope == 0.5
    assert growing.spread == 5.5
    assert growing.more_threads == 2
    assert growing.more_files == 2
    level = Flatness([Usage(100, 10, 20)] * 16)
    assert (level.growth, level.slope, level.spread) == (0, 0, 0)
    assert (level.more_threads, level.more_files) == (0, 0)
