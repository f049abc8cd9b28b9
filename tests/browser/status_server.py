"""A status page and its server, with generated events in place of a stream."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from stream_fs.pipeline import events
from stream_fs.pipeline.ports import Partition
from stream_fs.selector import Ranking, Report, ViewRanking
from stream_fs.selector.imputation import Imputation
from stream_fs.service.configuration import Configuration, load, problems
from stream_fs.service.http import WebServer, status_pages
from stream_fs.service.observability.status import StatusObserver
from stream_fs.service.observability.status_document import Health

READY = Health(alive=True, ready=True, reason=None)


def configured(folder: Path, changes: Mapping[str, Any]) -> Configuration:
    """A configuration of the stream `pumps`, with these sections over it."""
    sections = {
        "stream": {"name": "pumps", "topics": ["pumps"]},
        "selector": {"clusters": 2},
        "kafka": {"bootstrap": "localhost:9092"},
        **changes,
    }
    path = folder / "pumps.toml"
    path.write_text("".join(f"{name} = {problems.toml_value(v)}\n" for name, v in sections.items()))
    return load(path, {})


class StatusServer:
    """The observer, the health and the web server of a process that does not exist."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.observe = StatusObserver(configuration, time.time)
        self.health = READY
        self.connection_error: str | None = None
        self._rng = np.random.default_rng(0)
        self._port = 0

    @contextmanager
    def serving(self) -> Iterator[str]:
        """The address of the server, the same every time."""
        there = status_pages(lambda: self.observe.status(self.health, self.connection_error))
        with WebServer("127.0.0.1", self._port, there) as server:
            self._port = server.port
            yield f"http://127.0.0.1:{server.port}/"

    def take(self, partition: Partition) -> None:
        """Acquire a partition without a saved model."""
        self.observe(events.PhaseChanged(partition, "restoring"))
        self.observe(events.Restored(partition, 0, 0, 0, seconds=0.1, fallback=None))
        self.observe(events.PhaseChanged(partition, "running"))

    def publish(
        self, partition: Partition, chunk: int, letters: Mapping[str, int] | None = None
    ) -> events.ChunkCommitted:
        """The events of a chunk of 100 records, from reading to commit."""
        views = self.configuration.params().views
        position = 100 * chunk
        self.observe(events.RecordsRead(partition, 100, letters or {}, waiting=120, size=100))
        self.observe(events.LagMeasured(partition, 40))
        weights = self._rng.dirichlet(np.full(len(views), 20.0))
        alpha = {view.name: float(weight) for view, weight in zip(views, weights, strict=True)}
        missing = {view.name: float(self._rng.integers(100)) / 100 for view in views}
        imputed = {
            name: Imputation(round(100 * share), 1 - share) for name, share in missing.items()
        }
        report = Report(chunk, 100, 9, True, (2.0, 1.0), {}, alpha, {}, missing, imputed)
        self.observe(
            events.ChunkUpdated(
                partition, report, seconds=0.01, replayed=False, waiting=20, size=100
            )
        )
        ranked = []
        for view in views:
            scores = self._rng.random(view.dimension)
            order = np.argsort(-scores)
            ranked.append(ViewRanking(view.name, alpha[view.name], order, scores, view.names))
        ranking = Ranking(
            "default", "relevance", "0123456789abcdef", chunk, position, tuple(ranked)
        )
        overlap = {view.name: 0.75 for view in views} if chunk > 1 else {}
        committed = events.ChunkCommitted(
            partition,
            ranking,
            overlap,
            missing,
            imputed,
            start=position - 100,
            next_offset=position,
            dead_letters=letters or {},
            snapshot_bytes=2048 if chunk % 10 == 1 else 0,
            seconds=0.01,
            ranking_seconds=0.001,
        )
        self.observe(committed)
        return committed
