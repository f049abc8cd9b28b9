"""More than usual: a burst, slow updates, one hot partition among empty ones, the largest records.

The group must not lose sight of a member, its memory has a bound that follows from what is
configured, and what it publishes under load is what one publishes that finds everything there.
"""

from __future__ import annotations

import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Producer

from stream_fs.broker import Broker, running_broker
from tests.campaign import suspension
from tests.campaign.fault_result import Account, AddArgument
from tests.campaign.loads import Load, burst, hot, wide
from tests.campaign.resource_usage import peak, usage
from tests.support.recovery.comparison import Published
from tests.support.recovery.content import CHUNK, Content
from tests.support.recovery.launchers import Fresh, Start
from tests.support.recovery.prepared_stream import Stage, stage
from tests.support.recovery.service_process import Life
from tests.support.recovery.stream_run import Journey
from tests.support.recovery.subscriber import problems
from tests.support.topics import Topics, flush

MEMBER = '"session.timeout.ms" = 10000, "max.poll.interval.ms" = 60000'
"""Which is soon missed: by default only after 45 s, or 5 minutes without a poll."""


def bear(broker: Broker, folder: Path, load: Load, pause: float, start: Start = Fresh) -> Account:
    """A process that waits for the load and gets it, and another one that finds it."""
    topics = Topics(broker.bootstrap)
    topic = topics.create("load", partitions=load.partitions)
    content = Content(topic, load.chunks)
    settings = (f"chunk.records={load.chunk}", *load.settings)

    def journey(name: str) -> Journey:
        return Journey(
            broker.bootstrap, content, folder, name, start, MEMBER,
            settings=settings, dimensions=load.views,
        )  # fmt: skip

    wrong: list[str] = []
    shown = ""
    rankings = letters = None
    try:
        with journey("live") as live, journey("later") as later:
            life = live.start()
            life.until(lambda: len(life.log("task is running")) == load.partitions, "its work")
            time.sleep(pause)
            idle = usage(life.pid).megabytes
            began = time.monotonic()
            pour(broker.bootstrap, topic, load)
            found, wrong, most = followed(live, life)
            seconds = time.monotonic() - began
            expected, more, backlog = followed(later, later.start())
            wrong += more
            wrong += problems(message.value for message in found.rankings)
            saved = max(line.get("snapshot_bytes", 0) for line in life.log("chunk committed"))
            bound = load.bound(saved / 1e6)
            most = max(most, backlog)
            rate = load.chunks * load.chunk / seconds
            shown = f"{most:.0f} MB of at most {idle:.0f} + {bound:.0f}; {rate:.0f} records/s"
            if most > idle + bound:
                wrong.append(f"more memory than it may have: {shown}")
        rankings, letters = found.against(expected)
    except (AssertionError, TimeoutError) as error:
        wrong.append(str(error))
    finally:
        topics.remove()
    some = letters if letters is not None and letters.compared else None
    return Account(load.name, 1, rankings, some, shown, tuple(wrong))


def pour(bootstrap: str, topic: str, load: Load) -> None:
    """Write everything as fast as the broker takes it."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for value in load.values:
        while True:
            try:
                producer.produce(topic, value, partition=load.hot)
                break
            except BufferError:
                producer.poll(0.1)
    flush(producer)


def followed(journey: Journey, life: Life) -> tuple[Published, list[str], float]:
    """To the end of the stream: what is published, what was wrong, the most memory it had."""
    for goal in range(1, journey.content.chunks + 1, 20):  # patience is for each step of these
        journey.reach(life, goal)
    journey.reach(life, journey.content.chunks)
    wrong = expelled(life)
    most = peak(life.pid)
    return journey.finish(life), wrong, most


def expelled(life: Life) -> list[str]:
    """Whether the group has taken anything from a member that is still at work."""
    signs = ("partition released", "taken over by another owner")
    return [f"{sign}, without need" for sign in signs if life.log(sign)]


def slow_down(staged: Stage, chunks: int, seconds: float) -> Account:
    """Updates take so long that those of one poll take longer than a member may be silent."""
    silence = 500 / CHUNK * seconds
    wrong: list[str] = []
    with staged.journey("slow", suspension.NAMELESS) as journey:
        try:
            life = journey.start(more=["--slow", str(seconds)])
            journey.reach(life, chunks)
            wrong = expelled(life)
            life.stop()
            found = journey.complete()
        except (AssertionError, TimeoutError) as error:
            wrong.append(str(error))
            found = Published(journey.rankings.messages, journey.letters.messages)
    rankings, letters = found.against(staged.expected)
    shown = (
        f"a poll's chunks take {silence:.0f} s, {suspension.SESSION_SECONDS} s of silence allowed"
    )
    return Account(
        f"updates slower by {seconds:g} s", chunks, rankings, letters, shown, tuple(wrong)
    )


def run(options: Namespace) -> Iterator[Account]:
    """One load after the other."""
    with (
        tempfile.TemporaryDirectory(prefix="stream-fs-load-") as name,
        running_broker() as broker,
    ):
        folder = Path(name)
        yield bear(broker, folder, burst(options.burst), options.burst_pause)
        with stage(broker, folder, options.slow_chunks + 20, Fresh) as staged:
            yield slow_down(staged, options.slow_chunks, seconds=0.5)
        yield bear(broker, folder, hot(32, options.hot_chunks), 0)
        yield bear(broker, folder, wide(options.wide_chunks), 0)


def arguments(add: AddArgument) -> None:
    add("--burst", type=int, default=1_000_000, help="records that come at once")
    add("--burst-pause", type=float, default=30.0, help="seconds of nothing before them")
    add("--slow-chunks", type=int, default=100, help="chunks with slow updates")
    add("--hot-chunks", type=int, default=200, help="chunks in the only partition that has any")
    add("--wide-chunks", type=int, default=20, help="chunks of the largest records")
