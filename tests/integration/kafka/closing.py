"""A program: members of a group that join and are closed at random moments, one after the other.

Arguments: broker, topic, group, protocol, seed, and how many members. Every closed member is a line
on standard output. Others of its kind are to run at the same time, so that rebalances never end.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence

from stream_fs.kafka import ClientSettings, KafkaTransport, Rebalance
from stream_fs.pipeline.ports import Input, Partition

LONGEST_SECONDS = 2.0
"""Of a member; a rebalance takes about as long."""


class Owner:
    """Reads every partition from its beginning, and must be asked to give each one up."""

    def __init__(self) -> None:
        self.mine: set[Partition] = set()
        self.fresh: set[Partition] = set()

    def turn(self, source: Input) -> None:
        """Poll, and read what was assigned since the last turn from its beginning."""
        source.poll(0.01)
        while self.fresh:
            source.resume(self.fresh.pop(), 0)

    def assigned(self, partitions: Sequence[Partition]) -> None:
        self.mine.update(partitions)
        self.fresh.update(partitions)

    def revoked(self, partitions: Sequence[Partition]) -> None:
        time.sleep(0.01)  # a snapshot is committed
        self.mine.difference_update(partitions)
        self.fresh.difference_update(partitions)

    lost = revoked


def main(bootstrap: str, topic: str, group: str, protocol: str, seed: str, members: str) -> None:
    chance = random.Random(int(seed))
    rebalance = Rebalance(protocol)
    brisk = {"heartbeat.interval.ms": 100, "session.timeout.ms": 6000}
    properties = {} if rebalance is Rebalance.CONSUMER else brisk
    settings = ClientSettings(bootstrap, group, rebalance=rebalance, properties=properties)
    transport = KafkaTransport(settings, "stream", lambda topic: topic)
    for _ in range(int(members)):
        owner = Owner()
        source = transport.input([topic], owner)
        end = time.monotonic() + chance.uniform(0.0, LONGEST_SECONDS)
        while time.monotonic() < end:
            owner.turn(source)
        time.sleep(chance.uniform(0.0, LONGEST_SECONDS))  # busy: rebalances wait for the next call
        source.close()
        assert not owner.mine, f"not revoked: {owner.mine}"
        print("closed", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
