"""How much the service can take: `python -m tests.benchmarks.capacity [--quick]`.

Prints deploy/capacity.md. The service runs as a process of its own on a real broker (that of
STREAM_FS_BOOTSTRAP, or one that is started for it), on topics that were filled before.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from stream_fs.broker import running_broker
from stream_fs.broker.toolchain import KAFKA_VERSION
from stream_fs.wire import Sparse, encode_record
from tests.benchmarks.machine import processor
from tests.benchmarks.serving import Case, Served, serve
from tests.support.markdown_table import aligned

DIFFERENT = 2000
"""Records that differ; they are sent in turn."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.capacity")
    parser.add_argument("--quick", action="store_true", help="a fraction of the chunks, to try it")
    quick = parser.parse_args(arguments).quick
    load = os.getloadavg()[0]
    with running_broker() as broker, tempfile.TemporaryDirectory() as folder:

        def served(cases: Iterator[Case]) -> Iterator[tuple[Case, Served]]:
            for case in cases:
                print(case.name, file=sys.stderr)
                yield case, serve(case, broker.bootstrap, Path(folder))

        print("\n".join(header(load)))
        print(
            "\n".join(
                ["", "## Records", "", *RECORDS_TEXT, "", *records_table(served(sizes(quick)))]
            )
        )
        print(
            "\n".join(["", "## Models", "", *MODELS_TEXT, "", *models_table(served(models(quick)))])
        )
        print(
            "\n".join(
                ["", "## Partitions", "", *TASKS_TEXT, "", *tasks_table(served(tasks(quick)))]
            )
        )
    return 0


BUSY = (
    "",
    "**The machine was under other load during this run.** Figures of elapsed time (records/s,",
    "MB/s, times, restored) are several times too low or too slow; figures per core, memory,",
    "threads and sizes are valid. Measure again on an idle machine.",
)


def header(load: float) -> list[str]:
    return [
        "# Capacity",
        "",
        "Measured figures of the service, as a process on one machine that it shares with the",
        "broker. Ratios carry over to other machines better than absolute figures; there",
        "`make --silent bench-capacity` (`python -m tests.benchmarks.capacity`) prints this page.",
        *(BUSY if load > (os.cpu_count() or 1) / 2 else ()),
        "",
        f"- {processor()}, {os.cpu_count()} cores, shared with the broker; load average at the",
        f"  start {load:.1f}",
        f"- Apache Kafka {KAFKA_VERSION}, one node; Python {platform.python_version()}, "
        f"numpy {version('numpy')}, confluent-kafka {version('confluent-kafka')}",
        "- `default` preset, BLAS on one thread, `checkpoint.every_chunks` 10, exactly once",
    ]


# --- records --------------------------------------------------------------------------------------

RECORDS_TEXT = [
    "One partition, K = 10, chunks of 500, two dense views of the same size, a fifth of the views",
    "missing. Records per second of elapsed time, and per core: per second of processor time of",
    "the process (its Kafka threads included), which depends less on the load of the machine.",
    "Where the first is clearly below the second, other processes used the cores, the broker",
    "included. A chunk is ranked and committed while the next one updates the model.",
]


def sizes(quick: bool) -> Iterator[Case]:
    for format, features, chunks in (
        ("msgpack", 250, 120),
        ("msgpack", 2500, 40),
        ("json", 250, 60),
        ("json", 2500, 15),
    ):
        half = features // 2
        views = [{"name": "a", "dimension": half}, {"name": "b", "dimension": half}]
        yield Case(
            f"{format} d={features}",
            views,
            list(dense(half, format)),
            chunks=chunks // 10 + 2 if quick else chunks,
            format=format,
        )


def dense(dimension: int, format: str) -> Iterator[bytes]:
    """Records of ten clusters in two views, each of which is missing from a tenth of them."""
    rng = np.random.default_rng(0)
    means = rng.random((2, 10, dimension))
    for _ in range(DIFFERENT):
        group, lot = rng.integers(10), rng.random()
        rows = [(mean[group] + 0.3 * rng.random(dimension)).round(4) for mean in means]
        # As numbers with four decimals; packed they are four bytes each.
        views: dict[str, Any] = {"a": rows[0].tolist(), "b": rows[1].tolist()}
        if lot < 0.2:
            views["a" if lot < 0.1 else "b"] = None
        yield encode_record(views, format="json" if format == "json" else "msgpack")


TIMES = ("update", "ranking", "commit")


def times(served: Served) -> list[str]:
    """What a chunk takes."""
    return [f"{1000 * t:.0f} ms" for t in (served.update, served.ranking, served.transaction)]


def records_table(found: Iterator[tuple[Case, Served]]) -> list[str]:
    titles = ["format", "features", "record", "records/s", "per core", "MB/s", *TIMES]
    rows = [
        [
            f"{case.format}{', packed' if case.format == 'msgpack' else ''}",
            f"{sum(view['dimension'] for view in case.views)}",
            f"{case.record_bytes / 1000:.1f} kB",
            f"{served.rate:,.0f}",
            f"{served.per_core:,.0f}",
            f"{served.rate * case.record_bytes / 1e6:.0f}",
            *times(served),
        ]
        for case, served in found
    ]
    return aligned(titles, rows)


# --- models ---------------------------------------------------------------------------------------

MODELS_TEXT = [
    "One partition, one view of d features with 100 values in each record (sparse), chunks of 500.",
    "A snapshot is written with every tenth chunk, and at a graceful shutdown, so the state topic",
    "grows by a tenth of it with every chunk, and by a few hundred bytes. Memory is the peak of",
    "the process.",
]


def models(quick: bool) -> Iterator[Case]:
    for dimension, clusters in ((2_000, 10), (20_000, 10), (20_000, 50), (100_000, 10)):
        yield Case(
            f"d={dimension} K={clusters}",
            [{"name": "a", "dimension": dimension, "transform": "unit"}],
            list(sparse(dimension)),
            chunks=3 if quick else 11,
            clusters=clusters,
            top="100",
        )


def sparse(dimension: int) -> Iterator[bytes]:
    rng = np.random.default_rng(0)
    for _ in range(DIFFERENT):
        start = int(rng.integers(10)) * dimension // 20
        places = np.unique(start + rng.integers(dimension // 2, size=100)).astype(np.uint32)
        yield encode_record({"a": Sparse(places, rng.random(len(places)).astype(np.float32))})


def models_table(found: Iterator[tuple[Case, Served]]) -> list[str]:
    titles = ["d", "K", "d·K", "memory", "snapshot", "state per chunk", *TIMES]
    rows = []
    for case, served in found:
        dimension = int(case.views[0]["dimension"])
        rows.append(
            [
                f"{dimension:,}",
                f"{case.clusters}",
                f"{dimension * case.clusters:,}",
                f"{served.peak_bytes / 1e6:.0f} MB",
                f"{served.snapshot_bytes / 1e6:.2f} MB",
                f"{served.snapshot_bytes / 1e4:.0f} kB",
                *times(served),
            ]
        )
    return aligned(titles, rows)


# --- tasks ----------------------------------------------------------------------------------------

TASKS_TEXT = [
    "One process with several partitions, 250 features, K = 10: each partition has its own model",
    "and transactional producer, with its own threads and connections. The last column is the time",
    "from the start of the process until the last partition is restored.",
]


def tasks(quick: bool) -> Iterator[Case]:
    views = [{"name": "a", "dimension": 125}, {"name": "b", "dimension": 125}]
    records = list(dense(125, "msgpack"))
    for partitions in (1, 4, 16, 64):
        chunks = 3 if quick else max(3, 64 // partitions)
        yield Case(f"{partitions} tasks", views, records, chunks=chunks, partitions=partitions)


def tasks_table(found: Iterator[tuple[Case, Served]]) -> list[str]:
    titles = ["partitions", "records/s", "per core", "memory", "threads", "restored after"]
    rows = [
        [
            f"{case.partitions}",
            f"{served.rate:,.0f}",
            f"{served.per_core:,.0f}",
            f"{served.peak_bytes / 1e6:.0f} MB",
            f"{served.threads}",
            f"{served.ready:.1f} s",
        ]
        for case, served in found
    ]
    return aligned(titles, rows)


if __name__ == "__main__":
    sys.exit(main())
