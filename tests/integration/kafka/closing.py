"""A program: group members that join and are closed at random times, one after the other.

Arguments: broker, topic, group, protocol, seed, number of members. Prints a line per closed member.
Several of these programs run at the same time, so that rebalances overlap.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence

from stream_fs.kafka import ClientSettings, KafkaTransport, Rebalance
from stream_fs.pipeline.ports import Input, Partition

LONGEST_SECONDS = 2.0
"""Longest life of a member; a rebalance takes about as long."""


class Owner:
    """Reads every partition from its beginning, and expects every revocation."""

    def __init__(self) -> None:
        self.owned: set[Partition] = set()
        self.new: set[Partition] = set()

    def poll(self, source: Input) -> None:
        """Poll, and resume newly assigned partitions at offset 0."""
        source.poll(0.01)
        while self.new:
            source.resume(self.new.pop(), 0)

    def assigned(self, partitions: Sequence[Partition]) -> None:
        self.owned.update(partitions)
        self.new.update(partitions)

    def revoked(self, partitions: Sequence[Partition]) -> None:
        time.sleep(0.01)  # a snapshot is committed
        self.owned.difference_update(partitions)
        self.new.difference_update(partitions)

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
            owner.poll(source)
        time.sleep(chance.uniform(0.0, LONGEST_SECONDS))  # busy: rebalances wait for the next call
        source.close()
        assert not owner.owned, f"not revoked: {owner.owned}"
        print("closed", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
