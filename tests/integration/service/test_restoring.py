"""Restoring finds the last commit, however long that takes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from stream_fs.errors import RetriableError
from stream_fs.kafka import ClientSettings, KafkaTransport
from stream_fs.kafka.state_topic import KafkaStateLog
from stream_fs.pipeline import events
from stream_fs.pipeline.ports import Partition
from tests.integration.service.conftest import MakeMember
from tests.integration.service.stream import CHUNK, Stream, chunks
from tests.integration.service.undisturbed import assert_undisturbed
from tests.support.topics import TIMEOUT_SECONDS, flush


@pytest.mark.parametrize("end", [Producer.commit_transaction, Producer.abort_transaction])
def test_a_commit_behind_an_open_transaction_of_another_producer_is_found(
    end: Callable[[Producer, float], None], stream: Stream, member: MakeMember
) -> None:
    stream.feed(chunks(2))
    first = member(stream)
    first.completes(2)
    foreign = Producer(
        {
            "bootstrap.servers": stream.topics.bootstrap,
            "transactional.id": stream.topics.unique("foreign"),
        }
    )
    foreign.init_transactions(TIMEOUT_SECONDS)
    foreign.begin_transaction()
    state = stream.configuration().state_topics()[stream.only.topic]
    foreign.produce(state, b"foreign", b"foreign", 0)
    flush(foreign)
    stream.feed(chunks(3)[-CHUNK:])
    first.completes(3)
    first.kill()

    stream.feed(chunks(4)[-CHUNK:])
    second = member(stream)
    second.until(lambda: second.phase() == "restoring", "restoring")
    for _ in range(100):
        second.worker.run_once()
    assert second.phase() == "restoring"
    assert not second.of(events.Restored)
    end(foreign, TIMEOUT_SECONDS)
    second.completes(4)
    (restored,) = second.of(events.Restored)
    assert restored.chunk + restored.behind == 3
    assert_undisturbed(stream, 4)


class SlowToAnswer(KafkaTransport):
    """The first requests for the state are not answered."""

    def __init__(
        self, settings: ClientSettings, stream: str, state_topic_of: Callable[[str], str]
    ) -> None:
        super().__init__(settings, stream, state_topic_of)
        self._unanswered = 2

    def state_log(self, partition: Partition) -> KafkaStateLog:
        if self._unanswered:
            self._unanswered -= 1
            raise RetriableError("no answer")
        return super().state_log(partition)


def test_a_failed_restore_is_repeated(stream: Stream, member: MakeMember) -> None:
    stream.feed(chunks(2))
    first = member(stream)
    first.completes(2)
    first.kill()
    stream.feed(chunks(3)[-CHUNK:])
    second = member(stream, transport=SlowToAnswer)
    second.completes(3)
    failed = events.RestoreFailed(stream.only, "no answer")
    assert second.of(events.RestoreFailed) == [failed] * 2
    (restored,) = second.of(events.Restored)
    assert (restored.chunk, restored.behind) == (1, 1)
    assert_undisturbed(stream, 3)
