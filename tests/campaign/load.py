"""Loads: a burst, slow updates, one hot partition among empty ones, the largest records.

The member stays in its group, its memory has a bound that follows from the configuration, and its
output under load is that of a process that finds the whole input.
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
from tests.campaign.fault_result import AddArgument, FaultResult
from tests.campaign.loads import Load, burst, hot, wide
from tests.campaign.resource_usage import peak, usage
from tests.support.recovery.comparison import Published
from tests.support.recovery.content import CHUNK, Content
from tests.support.recovery.launchers import Launcher, Spawned
from tests.support.recovery.prepared_stream import PreparedStream, prepare_stream
from tests.support.recovery.service_process import ServiceProcess
from tests.support.recovery.stream_run import StreamRun
from tests.support.recovery.subscriber import problems
from tests.support.topics import Topics, flush

MEMBER = '"session.timeout.ms" = 10000, "max.poll.interval.ms" = 60000'
"""A member that is expelled soon: by default after 45 s, or 5 minutes without a poll."""


def run_load(
    broker: Broker, folder: Path, load: Load, pause: float, start: Launcher = Spawned
) -> FaultResult:
    """Compare a process that runs before the load comes with one that finds all of it."""
    topics = Topics(broker.bootstrap)
    topic = topics.create("load", partitions=load.partitions)
    content = Content(topic, load.chunks)
    settings = (f"chunk.records={load.chunk}", *load.settings)

    def stream_run(name: str) -> StreamRun:
        return StreamRun(
            broker.bootstrap, content, folder, name, start, MEMBER,
            settings=settings, dimensions=load.views,
        )  # fmt: skip

    wrong: list[str] = []
    shown = ""
    rankings = letters = None
    try:
        with stream_run("live") as live, stream_run("later") as later:
            process = live.start()
            process.until(
                lambda: len(process.log("task is running")) == load.partitions, "all tasks running"
            )
            time.sleep(pause)
            idle = usage(process.pid).megabytes
            began = time.monotonic()
            produce_all(broker.bootstrap, topic, load)
            found, wrong, most = run_to_end(live, process)
            seconds = time.monotonic() - began
            expected, more, backlog = run_to_end(later, later.start())
            wrong += more
            wrong += problems(message.value for message in found.rankings)
            saved = max(line.get("snapshot_bytes", 0) for line in process.log("chunk committed"))
            bound = load.bound(saved / 1e6)
            most = max(most, backlog)
            rate = load.chunks * load.chunk / seconds
            shown = f"{most:.0f} MB of at most {idle:.0f} + {bound:.0f}; {rate:.0f} records/s"
            if most > idle + bound:
                wrong.append(f"more memory than its bound: {shown}")
        rankings, letters = found.against(expected)
    except (AssertionError, TimeoutError) as error:
        wrong.append(str(error))
    finally:
        topics.remove()
    some = letters if letters is not None and letters.compared else None
    return FaultResult(load.name, 1, rankings, some, shown, tuple(wrong))


def produce_all(bootstrap: str, topic: str, load: Load) -> None:
    """Write everything as fast as the broker accepts it."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for value in load.values:
        while True:
            try:
                producer.produce(topic, value, partition=load.hot)
                break
            except BufferError:
                producer.poll(0.1)
    flush(producer)


def run_to_end(
    stream_run: StreamRun, process: ServiceProcess
) -> tuple[Published, list[str], float]:
    """Run to the end of the stream: the output, problems, and peak memory in MB."""
    for goal in range(1, stream_run.content.chunks + 1, 20):  # the timeout is for 20 chunks
        stream_run.reach(process, goal)
    stream_run.reach(process, stream_run.content.chunks)
    wrong = find_rebalances(process)
    most = peak(process.pid)
    return stream_run.finish(process), wrong, most


def find_rebalances(process: ServiceProcess) -> list[str]:
    """Signs in the log that the member lost a partition while it was running."""
    signs = ("partition released", "taken over by another owner")
    return [f"{sign}, unexpectedly" for sign in signs if process.log(sign)]


def slow_down(prepared: PreparedStream, chunks: int, seconds: float) -> FaultResult:
    """Make the updates of one poll take longer than the interval between two polls."""
    silence = 500 / CHUNK * seconds
    wrong: list[str] = []
    with prepared.new_run("slow", suspension.DYNAMIC_MEMBER) as stream_run:
        try:
            process = stream_run.start(more=["--slow", str(seconds)])
            stream_run.reach(process, chunks)
            wrong = find_rebalances(process)
            process.stop()
            found = stream_run.complete()
        except (AssertionError, TimeoutError) as error:
            wrong.append(str(error))
            found = Published(stream_run.rankings.messages, stream_run.letters.messages)
    rankings, letters = found.against(prepared.expected)
    shown = (
        f"a poll's chunks take {silence:.0f} s, the poll interval is {suspension.SESSION_SECONDS} s"
    )
    return FaultResult(
        f"updates slower by {seconds:g} s", chunks, rankings, letters, shown, tuple(wrong)
    )


def run(options: Namespace) -> Iterator[FaultResult]:
    """One load after the other."""
    with (
        tempfile.TemporaryDirectory(prefix="stream-fs-load-") as name,
        running_broker() as broker,
    ):
        folder = Path(name)
        yield run_load(broker, folder, burst(options.burst), options.burst_pause)
        with prepare_stream(broker, folder, options.slow_chunks + 20, Spawned) as prepared:
            yield slow_down(prepared, options.slow_chunks, seconds=0.5)
        yield run_load(broker, folder, hot(32, options.hot_chunks), 0)
        yield run_load(broker, folder, wide(options.wide_chunks), 0)


def arguments(add: AddArgument) -> None:
    add("--burst", type=int, default=1_000_000, help="records that come at once")
    add("--burst-pause", type=float, default=30.0, help="seconds of nothing before them")
    add("--slow-chunks", type=int, default=100, help="chunks with slow updates")
    add("--hot-chunks", type=int, default=200, help="chunks in the only partition that has any")
    add("--wide-chunks", type=int, default=20, help="chunks of the largest records")
