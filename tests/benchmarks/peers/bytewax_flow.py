"""The same with Bytewax, recovery on: `python -m … JOB`.

Messages go through the flow as whole batches, not one by one, and the open chunk is part of the
state. A snapshot comes with every epoch, which is a time: the default is ten seconds.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from bytewax import operators
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource
from bytewax.dataflow import Dataflow
from bytewax.operators import StatefulBatchLogic
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.run import cli_main

from stream_fs.selector import State
from tests.benchmarks.peers.by_hand import Selection
from tests.benchmarks.peers.job import CHUNK, CONSUMING, PRODUCING, Job

EPOCH: Final = timedelta(seconds=1)


class Fold(StatefulBatchLogic):
    """Rankings from batches of records."""

    def __init__(self, job: Job, resumed: tuple[State, list[bytes]] | None) -> None:
        self._selection = Selection(job)
        self._waiting: list[bytes] = []
        if resumed is not None:
            self._selection.state, self._waiting = resumed

    def on_batch(self, batches: list[list[bytes]]) -> tuple[list[bytes], bool]:
        rankings = []
        for batch in batches:
            self._waiting += batch
            while len(self._waiting) >= CHUNK:
                chunk, self._waiting = self._waiting[:CHUNK], self._waiting[CHUNK:]
                rankings.append(self._selection.fold(chunk))
        return rankings, StatefulBatchLogic.RETAIN

    def snapshot(self) -> tuple[State, list[bytes]]:
        return self._selection.state, list(self._waiting)


def main(job: Job) -> None:
    brokers = [job.bootstrap]
    flow = Dataflow("peer")
    source = KafkaSource(brokers, [job.topic], add_config=dict(CONSUMING), batch_size=CHUNK)
    messages = operators.input("records", flow, source)
    values = operators.flat_map_batch("values", messages, _together)
    rankings = operators.stateful_batch("fold", values, lambda resumed: Fold(job, resumed))
    key = job.topic.encode()
    sent = operators.map("message", rankings, lambda keyed: KafkaSinkMessage(key, keyed[1]))
    sink = KafkaSink(brokers, job.rankings, add_config=dict(PRODUCING))
    operators.output("rankings", sent, sink)
    kept = Path(job.folder) / "recovery"
    if not kept.exists():
        kept.mkdir()
        init_db_dir(kept, 1)
    cli_main(flow, epoch_interval=EPOCH, recovery_config=RecoveryConfig(kept))


def _together(messages: list[Any]) -> list[tuple[str, list[bytes]]]:
    """A batch as one item, for the one model that there is."""
    return [("model", [message.value for message in messages])]


if __name__ == "__main__":
    main(Job.read(Path(sys.argv[1])))
