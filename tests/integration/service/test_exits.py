"""The end of the process: its exit code and standard error."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from confluent_kafka.cimpl import NewTopic

from tests.integration.kafka.backend import KafkaBackend
from tests.integration.service.conftest import MakeMember, MakeService, MakeStream
from tests.integration.service.damages import removed, torn
from tests.integration.service.services import NOWHERE, Service
from tests.integration.service.state import read_state, replace_snapshots
from tests.integration.service.stream import CHUNK, FIRST, Stream, chunks, declared
from tests.integration.service.undisturbed import assert_undisturbed
from tests.support.topics import TIMEOUT_SECONDS


@pytest.fixture(scope="module", autouse=True)
def unreachable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Started before the other tests: its timeout takes long."""
    path = tmp_path_factory.mktemp("unreachable") / "stream.toml"
    path.write_text(
        f"""
        stream = {{ name = "stream", topics = ["in"] }}
        views = [{{ name = "a", dimension = 3 }}]
        selector = {{ clusters = 2 }}
        kafka = {{ bootstrap = "{NOWHERE}" }}
        """,
        encoding="utf-8",
    )
    service = Service(path)
    yield service
    service.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_before_the_start_ends_with_exit_code_0(
    make_stream: MakeStream, service: MakeService, number: signal.Signals
) -> None:
    """At once, although it is waiting for a broker."""
    waiting = {"kafka.bootstrap": NOWHERE, "kafka.call_timeout": 90.0}
    one = service(make_stream(create=False), waiting)
    one.wait_for_output("starting")
    one.send(number)
    assert one.wait() == 0, one.output
    assert "stopped before startup was complete" in one.output


def test_topics_that_are_missing_or_wrong_are_named(
    make_stream: MakeStream, service: MakeService
) -> None:
    stream = make_stream(create=False)
    (topic,) = stream.inputs
    first = service(stream)
    assert first.wait() == 1
    assert f"topic {topic} does not exist: check stream.topics, or create it" in first.output
    names = [f"{topic}.state", f"{stream.name}.rankings", f"{stream.name}.dead-letters"]
    for name in names:
        assert (
            f"topic {name} does not exist: create it with `stream-fs topics create`" in first.output
        )

    wrong = [
        NewTopic(topic, 2, config={"cleanup.policy": "compact"}),
        NewTopic(f"{topic}.state", 1, config={"cleanup.policy": "delete"}),
        NewTopic(f"{stream.name}.rankings", 1, config={"cleanup.policy": "delete"}),
    ]
    for made in stream.topics.admin.create_topics(wrong).values():
        made.result(TIMEOUT_SECONDS)
    stream.create(1)  # what is missing
    second = service(stream)
    assert second.wait() == 1
    for problem in (
        f"topic {topic} has cleanup.policy=compact, and needs delete",
        f"topic {topic}.state has 1 partitions, and needs 2",
        f"topic {topic}.state has cleanup.policy=delete, and needs compact",
        f"topic {stream.name}.rankings has cleanup.policy=delete, and needs compact",
    ):
        assert problem in second.output
    assert "does not exist" not in second.output
    for deleted in stream.topics.admin.delete_topics([topic, *names[:2]]).values():
        deleted.result(TIMEOUT_SECONDS)


def test_a_signal_shuts_the_service_down_gracefully(stream: Stream, service: MakeService) -> None:
    stream.feed(chunks(2))
    one = service(stream)
    one.wait_for(one.ready, "it is not ready")
    rankings = stream.configuration().output.topic
    one.wait_for(lambda: stream.end(rankings) == 4, "two rankings and their markers")
    one.wait_for_output("chunk committed stream=" + stream.name)
    one.wait_for(lambda: one.output.count("chunk committed") == 2, "both chunks are committed")
    assert one.get("/healthz") == (200, "ok\n")
    assert (
        f'stream_fs_chunks_total{{outcome="published",partition="0",stream="{stream.name}"'
        in (one.get("/metrics")[1])
    )
    assert [at.chunk for at in read_state(stream).progress.snapshots] == [1, 0]
    one.send(signal.SIGTERM)
    assert one.wait() == 0
    assert "stopped" in one.output
    assert [at.chunk for at in read_state(stream).progress.snapshots] == [2, 1]
    assert group_members(stream) == 0
    assert_undisturbed(stream, 2)


def test_a_change_that_would_falsify_the_model_is_refused(
    stream: Stream, member: MakeMember, service: MakeService
) -> None:
    stream.feed(chunks(5))
    first = member(stream)
    first.completes(5)
    first.stop()
    state = read_state(stream)

    changed = {
        "views": declared(a={"dimension": 7}, b={"transform": "unit"}),
        "selector.clusters": 3,
        "selector.preset": "paper",
    }
    refused(stream, service(stream, changed), *CHANGED)

    replace_snapshots(stream, state, torn(state.snapshots[0]), removed(state.snapshots[1]))
    refused(
        stream,
        service(stream),
        f"no snapshot of {stream.only} can be used",
        "--partition 0 --to-offset N`",
    )

    replace_snapshots(stream, state, *state.snapshots)
    stream.feed([b"bad"])
    refused(
        stream,
        service(stream, {"dead_letters.policy": "fail"}),
        f"{stream.only} at offset {FIRST + 4 * CHUNK} is bad (malformed: ",
        f"--keep-model --to-offset {FIRST + 4 * CHUNK + 1}`",
    )

    KafkaBackend(stream.topics).delete_below(stream.only, FIRST + 4 * CHUNK + 1)
    refused(
        stream,
        service(stream),
        f"{stream.only} continues at offset {FIRST + 4 * CHUNK}, ",
        f"--keep-model --to-offset {FIRST + 4 * CHUNK + 1}`",
    )


CHANGED = [
    "stream-fs: the checkpoint was made with another configuration:",
    "\n  dimension of view 'a': 6 → 7\n",
    "\n  transform of view 'b': 'minmax' → 'unit'\n",
    "\n  clusters: 2 → 3\n",
    "\n  preset: 'default' → 'paper'\n",
    "`stream-fs checkpoint reset`",
]


def refused(stream: Stream, service: Service, *texts: str) -> None:
    """It ends with the exit code of a refusal, the reason and the remedy, and leaves the group."""
    assert service.wait() == 3, service.output
    for text in texts:
        assert text in service.output
    assert "Traceback" not in service.output
    assert group_members(stream) == 0


def group_members(stream: Stream) -> int:
    (answer,) = stream.topics.admin.describe_consumer_groups([stream.name]).values()
    return len(answer.result(TIMEOUT_SECONDS).members)


def test_a_second_signal_ends_it_at_once(stream: Stream, service: MakeService) -> None:
    one = service(stream, program=("-c", SLOW_TO_STOP))
    one.wait_for(one.ready, "it is not ready")
    one.send(signal.SIGTERM)
    one.wait_for_output("about to stop")
    one.send(signal.SIGTERM)
    assert one.wait() == 128 + signal.SIGTERM


SLOW_TO_STOP = """
import sys, time
from stream_fs.cli.main import main
from stream_fs.pipeline.worker import Worker

def stop(self):
    print("about to stop", file=sys.stderr, flush=True)
    time.sleep(600)

Worker.stop = stop
sys.exit(main(sys.argv[1:]))
"""


def test_a_hanging_client_ends_the_process(stream: Stream, service: MakeService) -> None:
    limits = {
        # Also for the first look at the topics, which a busy broker must have answered by then.
        "kafka.transaction_timeout": 10.0,
        "kafka.call_timeout": 10.0,
        "service.watchdog_seconds": 12.0,
    }
    one = service(stream, limits, program=("-c", HANGING_CLIENT))
    assert one.wait() == 70, one.output
    assert "a client call hangs; exiting" in one.output
    assert "in never_answers" in one.output, "where it hangs"


HANGING_CLIENT = """
import sys, time
from stream_fs.cli.main import main
from stream_fs.kafka.consumer import KafkaConsumer

def never_answers(self, timeout, max_records=None):
    time.sleep(600)

KafkaConsumer.poll = never_answers
sys.exit(main(sys.argv[1:]))
"""


def test_a_transaction_of_several_slow_calls_does_not_end_the_process(
    stream: Stream, service: MakeService
) -> None:
    """Each call keeps its time limit; together they take longer than the watchdog waits."""
    limits = {
        "kafka.transaction_timeout": 20.0,
        "kafka.call_timeout": 20.0,
        "service.watchdog_seconds": 21.0,
    }
    stream.feed(chunks(1))
    one = service(stream, limits, program=("-c", SLOW_BROKER))
    one.wait_for(lambda: 'outcome="published"' in one.get("/metrics")[1], "the chunk is published")
    one.terminate()


SLOW_BROKER = """
import sys, time
from stream_fs.cli.main import main
from stream_fs.kafka import publisher

class Slow:
    def __init__(self, producer):
        self._producer = producer

    def __getattr__(self, name):
        return getattr(self._producer, name)

    def flush(self, timeout):  # of the snapshot, and of the records
        time.sleep(5)
        return self._producer.flush(timeout)

    def commit_transaction(self, timeout):
        self._producer.commit_transaction(timeout)
        time.sleep(13)

made = publisher.transactional_producer
publisher.transactional_producer = lambda *words: Slow(made(*words))
sys.exit(main(sys.argv[1:]))
"""


def test_a_broker_that_cannot_be_reached_is_named(unreachable: Service) -> None:
    assert unreachable.wait() == 4, unreachable.output
    assert f"kafka.bootstrap={NOWHERE}" in unreachable.output
    assert "Connection refused" in unreachable.output
    assert "Traceback" not in unreachable.output
