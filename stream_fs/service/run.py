"""`stream-fs run`: configuration, broker, pipeline and observability wired together."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector
from threadpoolctl import threadpool_limits

from stream_fs.errors import StreamFsError
from stream_fs.kafka import ClientSettings, KafkaTransport, Topics
from stream_fs.pipeline import events
from stream_fs.pipeline.transaction import Runtime
from stream_fs.pipeline.worker import Worker
from stream_fs.service import http
from stream_fs.service.configuration import Configuration
from stream_fs.service.exit_codes import ExitCode
from stream_fs.service.http import WebServer, status_pages
from stream_fs.service.observability.logging import ROOT, log_event, set_up
from stream_fs.service.observability.metrics import MetricsObserver
from stream_fs.service.observability.status import StatusObserver
from stream_fs.service.observability.status_document import Health
from stream_fs.service.process.executor import CommitThreads
from stream_fs.service.process.memory import freeze_loaded_objects, keep_freed_memory
from stream_fs.service.process.signals import SignalHandler
from stream_fs.service.process.watchdog import Watchdog
from stream_fs.service.topics import topic_gaps, topic_problems

_LOGGER: Final = logging.getLogger(ROOT)
_LAG_SECONDS: Final = 5.0
"""Interval between two measurements of the lag."""


def run(
    configuration: Configuration,
    stopping: SignalHandler,
    *,
    crash_hook: Callable[[str], None] = lambda _: None,
) -> ExitCode:
    """Run until a signal requests a shutdown; raises any error that cannot be recovered from.

    `crash_hook` is called at the steps that `pipeline.transaction.Runtime` lists.
    """
    _set_up_process(configuration)
    settings = configuration.kafka_settings()
    topics = Topics(settings)
    if not _check_topics(configuration, topics):
        return ExitCode.PROBLEM
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)  # CPU time, memory and open files
    wall_clock = time.time  # noqa: TID251  # for people and Prometheus; not for scheduling
    metrics = MetricsObserver(registry, configuration.stream.name, wall_clock)
    status = StatusObserver(configuration, wall_clock)
    status.stream_partitions(topics.partitions(configuration.stream.topics))
    watchdog = Watchdog(configuration.service.watchdog_seconds, time.monotonic)

    def observe(event: events.Event) -> None:
        # One run of the loop calls the broker for every partition, each with a timeout of its own.
        watchdog.beat()
        metrics(event)
        status(event)
        log_event(event)

    with ExitStack() as stack:
        # One BLAS thread: streams scale by processes, and the same sums give the same bytes.
        stack.enter_context(threadpool_limits(1))
        stopping.begin()
        worker = _worker(configuration, settings, watchdog, observe, crash_hook)
        metrics.ready_when(lambda: _ready(worker)[0])
        stack.enter_context(_serving(configuration, registry, status, watchdog, worker))
        freeze_loaded_objects()
        watchdog.start()
        stack.callback(watchdog.stop)
        _run_until_stopped(worker, observe, watchdog, stopping)
    _LOGGER.info("stopped")
    return ExitCode.OK


def _set_up_process(configuration: Configuration) -> None:
    """Set up the log and the allocator, and log the start."""
    set_up(
        configuration.log.format,
        configuration.log.level,
        stream=configuration.stream.name,
        secrets=configuration.secrets(),
    )
    keep_freed_memory()
    _LOGGER.info("starting", extra={"fields": {"version": version("stream-fs")}})


def _check_topics(configuration: Configuration, topics: Topics) -> bool:
    """Log the problems of the topics; whether the stream can run."""
    gaps = topic_gaps(configuration, topics)
    for gap in gaps:
        _LOGGER.warning(gap)
    problems = [one for one in topic_problems(configuration, topics) if one not in gaps]
    for problem in problems:
        _LOGGER.error(problem)
    return not problems


def _worker(
    configuration: Configuration,
    settings: ClientSettings,
    watchdog: Watchdog,
    observe: events.Observer,
    crash_hook: Callable[[str], None],
) -> Worker:
    """The worker on Kafka; every transaction runs in a thread that the watchdog watches."""
    state_topics, threads = configuration.state_topics(), CommitThreads()
    transport = KafkaTransport(
        settings,
        configuration.stream.name,
        state_topics.__getitem__,
        heartbeat=watchdog.progress,
        chunk_records=configuration.chunk.records,
    )
    return Worker(
        configuration.stream.topics,
        configuration.stream_settings(),
        transport,
        Runtime(time.monotonic, observe, crash_hook, lambda job: threads(watchdog.watched(job))),
        jitter=lambda: random.uniform(0.25, 1.0),  # noqa: S311  # it spreads retries
        grace=configuration.service.grace_seconds,
    )


@contextmanager
def _serving(
    configuration: Configuration,
    registry: CollectorRegistry,
    status: StatusObserver,
    watchdog: Watchdog,
    worker: Worker,
) -> Iterator[None]:
    """Serve the metrics, the probes and the status page."""
    pages = http.service_pages(registry, lambda: _alive(watchdog), lambda: _ready(worker))
    pages |= status_pages(lambda: status.status(_health(watchdog, worker), worker.connection_error))
    with WebServer(configuration.service.host, configuration.service.port, pages) as server:
        address = f"http://{server.host}:{server.port}"
        _LOGGER.info("listening", extra={"fields": {"address": address}})
        yield


def _run_until_stopped(
    worker: Worker, observe: events.Observer, watchdog: Watchdog, stopping: SignalHandler
) -> None:
    """Run the loop, then stop the worker; also after an error, which is raised."""
    try:
        _loop(worker, observe, watchdog, stopping)
    except Exception:
        watchdog.beat()
        _leave(worker)
        raise
    watchdog.beat()
    worker.stop()


def _loop(
    worker: Worker,
    observe: events.Observer,
    watchdog: Watchdog,
    stopping: SignalHandler,
) -> None:
    """Run the worker until a signal asks to stop, and measure the lag of every partition."""
    due = time.monotonic()
    while not stopping.stop_requested:
        worker.run_once()
        watchdog.beat()
        if time.monotonic() >= due:
            for partition, lag in worker.lags().items():
                observe(events.LagMeasured(partition, lag))
            due = time.monotonic() + _LAG_SECONDS


def _leave(worker: Worker) -> None:
    """Leave the group after an error, so that other members need not wait for the timeout."""
    try:
        worker.stop()
    except StreamFsError as error:
        _LOGGER.warning("graceful shutdown failed: %s", error)


def _alive(watchdog: Watchdog) -> tuple[bool, str]:
    seconds = watchdog.seconds_since_progress
    return seconds < watchdog.limit, f"no progress of the loop for {seconds:.0f} s"


def _ready(worker: Worker) -> tuple[bool, str]:
    connection_error = worker.connection_error
    if connection_error is not None:
        return False, f"waiting for the broker: {connection_error}"
    if not worker.joined:
        return False, "joining the group"
    restore_error = worker.restore_error
    return worker.ready, "restoring" if restore_error is None else f"restoring {restore_error}"


def _health(watchdog: Watchdog, worker: Worker) -> Health:
    alive, no_progress = _alive(watchdog)
    ready, not_ready = _ready(worker)
    reason = None if alive and ready else not_ready if alive else no_progress
    return Health(alive, ready, reason)
