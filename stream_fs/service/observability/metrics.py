"""Metrics of one process, exported to Prometheus."""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib.metadata import version
from typing import TypeAlias

import prometheus_client
from prometheus_client import CollectorRegistry, Info, disable_created_metrics

from stream_fs.pipeline.events import Event, PartitionEvent
from stream_fs.pipeline.events.instruments import (
    INSTRUMENTS,
    Counter,
    Gauge,
    Histogram,
    Instrument,
    Labels,
    Sample,
)
from stream_fs.pipeline.ports import Partition

Family: TypeAlias = (
    prometheus_client.Counter | prometheus_client.Gauge | prometheus_client.Histogram
)
Write: TypeAlias = Callable[[float], None]
_Series: TypeAlias = dict[tuple[Instrument, Labels], Write]


class MetricsObserver:
    """Observer of the pipeline; `clock` gives seconds since 1970."""

    def __init__(
        self, registry: CollectorRegistry, stream: str, clock: Callable[[], float]
    ) -> None:
        # Creation times would double the number of series.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # prometheus_client has no types
        build = Info("stream_fs_build", "Version of the program, always 1.", registry=registry)
        build.info({"version": version("stream-fs"), "python": platform.python_version()})
        ready = prometheus_client.Gauge(
            "stream_fs_ready",
            "1 if every assigned partition is restored and a broker answers, as at /readyz.",
            ("stream",),
            registry=registry,
        )
        self._ready = ready.labels(stream)
        self._ready.set(0)
        self._stream = stream
        self._clock = clock
        self._families = {instrument: _family(instrument, registry) for instrument in INSTRUMENTS}
        self._series: dict[Partition | None, _Series] = {}
        """By partition, or None for the merge: to look a series up by its labels costs far more."""

    def __call__(self, event: Event) -> None:
        """Write the samples of an event; remove the series of what was released."""
        place = event.partition if isinstance(event, PartitionEvent) else None
        if event.released:
            self._remove(place)
            return
        series = self._series.setdefault(place, {})
        for sample in event.samples(self._clock()):
            write = series.get((sample.instrument, sample.labels))
            if write is None:
                write = self._write(place, sample)
                series[sample.instrument, sample.labels] = write
            write(sample.value)

    def ready_when(self, check: Callable[[], bool]) -> None:
        """Call `check` at every scrape for whether the process is ready."""
        self._ready.set_function(check)

    def _write(self, place: Partition | None, sample: Sample) -> Write:
        series = self._families[sample.instrument].labels(*self._scope(place), *sample.labels)
        if isinstance(series, prometheus_client.Counter):
            return series.inc
        if isinstance(series, prometheus_client.Gauge):
            return series.set
        return series.observe

    def _remove(self, place: Partition | None) -> None:
        for instrument, labels in self._series.pop(place, {}):
            self._families[instrument].remove(*self._scope(place), *labels)

    def _scope(self, place: Partition | None) -> Labels:
        if place is None:
            return (self._stream,)
        return (self._stream, place.topic, str(place.number))


def _family(instrument: Instrument, registry: CollectorRegistry) -> Family:
    labels = (*instrument.scope, *instrument.labels)
    match instrument:
        case Counter():
            return prometheus_client.Counter(
                instrument.name, instrument.help, labels, registry=registry
            )
        case Gauge():
            return prometheus_client.Gauge(
                instrument.name, instrument.help, labels, registry=registry
            )
        case Histogram(buckets=buckets):
            return prometheus_client.Histogram(
                instrument.name, instrument.help, labels, buckets=buckets, registry=registry
            )
        case _:
            raise TypeError(f"{instrument} is of no kind that Prometheus has")
