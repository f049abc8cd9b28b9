"""`python -m tests.benchmarks.merge_round`: what a look at all partitions costs on a broker.

Every partition has a new snapshot each time: the most that a look has to read. The longest step is
how long the tasks of that process wait for it, but for the merge and the ranking themselves.
"""

from __future__ import annotations

import argparse
import sys
import time
from statistics import median

from threadpoolctl import threadpool_limits

from stream_fs.broker import running_broker
from stream_fs.checkpoint import Progress, SnapshotPlace
from stream_fs.kafka import ClientSettings, KafkaTransport
from stream_fs.pipeline.merge.snapshot_cache import SnapshotCache
from stream_fs.pipeline.model import Model, progress_record, snapshot_records
from stream_fs.pipeline.ports import Partition
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.pipeline.transaction import Runtime
from stream_fs.selector import params
from tests.benchmarks.workload import Shape, warm_model
from tests.support.markdown_table import aligned
from tests.support.settings import stream_settings
from tests.support.topics import Topics

ROUNDS = 5


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.merge_round", description=__doc__
    )
    parser.add_argument("--dimensions", type=int, nargs="+", default=(250, 2500))
    parser.add_argument("--partitions", type=int, nargs="+", default=(4, 16, 64))
    options = parser.parse_args()
    with threadpool_limits(1), running_broker() as broker:
        topics = Topics(broker.bootstrap)
        rows = [
            _measured(topics, Shape(dimension), count)
            for dimension in options.dimensions
            for count in options.partitions
        ]
    head = ["shape", "partitions", "MB read", "first s", "look s", "longest step s", "idle look s"]
    print("\n".join(aligned(head, rows)))
    return 0


def _measured(topics: Topics, shape: Shape, count: int) -> list[str]:
    topic = topics.create("merge", partitions=count)
    state = topics.create("state", partitions=count)
    settings = stream_settings(
        stream="s",
        group="g",
        params=params(shape.declared, shape.clusters),
        views=(),
        rankings_topic="",
        dead_letter_topic="",
        state_topics={topic: state},
    )
    client = ClientSettings(topics.bootstrap, topics.unique("group"))
    transport = KafkaTransport(client, "s", settings.state_topics.__getitem__)
    writer = _Writer(transport, settings, topic, count, shape)
    cache = SnapshotCache([topic], settings, transport, Runtime(time.monotonic, _unexpected))
    looks, longest = [], []
    for _ in range(ROUNDS + 1):
        size = writer.write()
        seconds, step = _look(cache)
        assert len(cache.models) == count
        looks.append(seconds)
        longest.append(step)
    idle, _ = _look(cache)
    cache.close()
    topics.remove()
    return [
        str(shape),
        str(count),
        f"{size / 1e6:.1f}",
        f"{looks[0]:.2f}",
        f"{median(looks[1:]):.2f}",
        f"{median(longest[1:]):.3f}",
        f"{idle:.3f}",
    ]


def _look(cache: SnapshotCache) -> tuple[float, float]:
    """Seconds of a look, and of its longest step; between steps a loop has other things to do."""
    longest = 0.0
    began = mark = time.perf_counter()
    for _ in cache.refresh():
        longest = max(longest, time.perf_counter() - mark)
        time.sleep(0.001)
        mark = time.perf_counter()
    return time.perf_counter() - began, longest


def _unexpected(event: object) -> None:
    raise AssertionError(event)


class _Writer:
    """The tasks of all partitions, but for their records."""

    def __init__(
        self,
        transport: KafkaTransport,
        settings: StreamSettings,
        topic: str,
        count: int,
        shape: Shape,
    ) -> None:
        self._settings = settings
        self._places = [Partition(topic, number) for number in range(count)]
        self._publisher = transport.merge_publisher()
        while not self._publisher.acquire():
            pass
        self._state, _ = warm_model(shape, 1)
        self._number = 0

    def write(self) -> int:
        """Another snapshot of every partition; bytes in all."""
        total = 0
        model = Model(self._state, 0, None, self._settings.chunk_policy)
        for place in self._places:
            records, size = snapshot_records(self._settings, place, model, self._number)
            self._publisher.begin()
            offset = self._publisher.send(records)[0]
            progress = Progress(
                chunk=1,
                from_offset=0,
                next_offset=0,
                snapshots=(SnapshotPlace(self._number, 1, offset),),
                digest=None,
                fingerprint=self._settings.params.fingerprint,
                owner=self._settings.owner,
            )
            self._publisher.send([progress_record(self._settings, place, progress)])
            self._publisher.commit()
            total += size
        self._number += 1
        return total


if __name__ == "__main__":
    sys.exit(main())
