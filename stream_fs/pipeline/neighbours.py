"""Streams that started at the same time as this one, and share its name or its group."""

from __future__ import annotations

from contextlib import closing, suppress

from stream_fs.pipeline.ownership import locate
from stream_fs.pipeline.ports import Partition, StateLog, Transport
from stream_fs.pipeline.restore import Undecided, patiently
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.pipeline.transaction import Clock, Steps


class Neighbours:
    """Looks for them in the state topics, for all partitions of a process.

    A stream records its start before it looks, and looks before its first chunk: of two that start
    at the same time, at least one finds the other. With a shared name both have every partition;
    with a shared group they divide them, so all are read, once after the first start.
    """

    def __init__(self, transport: Transport, settings: StreamSettings, clock: Clock) -> None:
        self._transport = transport
        self._settings = settings
        self._clock = clock
        self._reading = self._read = False

    def check(self, log: StateLog, partition: Partition) -> Steps:
        """Raise `ForeignState` if there is one; `log` is that of the partition's state."""
        yield from self._check(log, partition)
        while self._reading:  # for another partition
            yield
        if not self._read:
            self._reading = True
            try:
                yield from self._check_all()
                self._read = True
            finally:
                self._reading = False

    def _check_all(self) -> Steps:
        """A partition with an open transaction is skipped after a while."""
        with closing(self._transport.state_logs()) as logs:
            for partition, end in logs.ends(list(self._settings.state_topics)).items():
                if end:
                    with closing(logs.log(partition)) as log, suppress(Undecided):
                        yield from patiently(self._check(log, partition), self._clock)

    def _check(self, log: StateLog, partition: Partition) -> Steps:
        group_offset = self._transport.group_offset
        found = yield from locate(log, partition, self._settings.owner, group_offset)
        found.check_others()
