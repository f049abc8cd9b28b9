"""The capacity benchmark, on a stream too small for meaningful figures."""

from __future__ import annotations

from pathlib import Path

from stream_fs.broker import Broker
from tests.benchmarks.capacity import dense, models_table, records_table, tasks_table
from tests.benchmarks.serving import Case, serve


def test_a_case_is_served_and_shown(broker: Broker, tmp_path: Path) -> None:
    views = [{"name": "a", "dimension": 6}, {"name": "b", "dimension": 6}]
    records = list(dense(6, "msgpack"))
    case = Case("small", views, records, chunks=3, clusters=2, chunk=50, partitions=2)
    served = serve(case, broker.bootstrap, tmp_path)
    assert case.per_partition == 150
    assert min(served.rate, served.per_core, served.update, served.transaction) > 0
    assert served.ready > 0
    assert served.threads > 1
    assert served.peak_bytes > 10_000_000
    assert 1_000 < served.snapshot_bytes < 100_000, "of one partition"
    for table in (records_table, models_table, tasks_table):
        titles, _, row = table(iter([(case, served)]))
        assert titles.count("|") == row.count("|")
