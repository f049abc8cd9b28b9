"""After a failed transaction its chunk is published, and once."""

from __future__ import annotations

from stream_fs.errors import AbortableError
from stream_fs.kafka import ClientSettings, KafkaTransport
from stream_fs.kafka.publisher import KafkaPublisher
from stream_fs.pipeline import events
from stream_fs.pipeline.ports import Partition
from tests.integration.service.conftest import MakeMember, MakeStream
from tests.integration.service.stream import ALONE, chunks
from tests.integration.service.undisturbed import assert_undisturbed
from tests.support.processes import wait_until


class Refused(KafkaPublisher):
    """Its third commit, that of the second chunk, fails and has to be aborted."""

    def __init__(self, settings: ClientSettings, transactional_id: str) -> None:
        super().__init__(settings, transactional_id)
        self._commits = 0

    def commit(self) -> None:
        self._commits += 1
        if self._commits == 3:
            raise AbortableError("refused")
        super().commit()


class RefusingTransport(KafkaTransport):
    def publisher(self, partition: Partition, *, legacy: bool = False) -> KafkaPublisher:
        return Refused(self._settings, self._transactional_id(str(partition), legacy=legacy))


def test_an_aborted_chunk_is_sent_again(make_stream: MakeStream, member: MakeMember) -> None:
    stream = make_stream(ALONE)
    stream.feed(chunks(3))
    one = member(stream, transport=RefusingTransport)
    one.completes(3)
    assert one.of(events.TransactionFailed) == [
        events.TransactionFailed(stream.only, "aborted", "refused")
    ]
    assert not one.of(events.Fenced)
    # The record that was aborted and the marker behind it take offsets 2 and 3.
    assert list(stream.committed(stream.configuration().output.topic)) == [0, 4, 6]
    assert_undisturbed(stream, 3)


def test_the_broker_aborts_a_transaction_that_takes_too_long(
    make_stream: MakeStream, member: MakeMember
) -> None:
    # The limit of the other transactions, too, which take a while on a busy machine.
    stream = make_stream({"kafka.transaction_timeout": 8.0, **ALONE})
    stream.feed(chunks(3))
    rankings = stream.configuration().output.topic
    slow = member(stream)

    def wait() -> None:
        """Until the marker of the abort is there."""
        wait_until(lambda: stream.end(rankings) == 4, "the transaction is not voided")

    slow.at("records sent", 2, wait)
    slow.completes(3)
    assert [fence.final for fence in slow.of(events.Fenced)] == [False]
    first, again = slow.of(events.Restored)
    assert (first.chunk, first.behind) == (0, 0)
    assert (again.chunk, again.behind) == (1, 0)
    assert_undisturbed(stream, 3)
