"""The metrics of one scrape."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from stream_fs.pipeline.events.instruments import PARTITION
from tests.integration.service.services import Service
from tests.integration.service.stream import Stream


class Scraped:
    """The samples of one scrape."""

    def __init__(self, service: Service, stream: Stream) -> None:
        status, self.text = service.get("/metrics")
        assert status == 200
        self._stream = stream
        self.families = {
            family.name: family for family in text_string_to_metric_families(self.text)
        }
        self._samples = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in self.families.values()
            for sample in family.samples
        }

    def __call__(self, name: str, **labels: str) -> float | None:
        """A value of the stream's only partition."""
        place = self._stream.only
        of = dict(zip(PARTITION, (self._stream.name, place.topic, str(place.number)), strict=True))
        return self._samples.get((name, frozenset({**of, **labels}.items())))

    def plain(self, name: str, **labels: str) -> float:
        """A value of the process."""
        return self._samples[name, frozenset(labels.items())]

    def by(self, name: str, label: str) -> dict[str, float]:
        """The values of a metric of the partition, by one more label."""
        return {
            dict(labels)[label]: value
            for (found, labels), value in self._samples.items()
            if found == name
        }
