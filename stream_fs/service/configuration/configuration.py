"""The whole configuration, and what it means to the pipeline and to the Kafka clients."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BeforeValidator, Field

from stream_fs.checkpoint import part_bytes
from stream_fs.kafka.settings import ClientSettings, Property, Rebalance, is_secret
from stream_fs.pipeline.settings import DeadLetterSettings, StreamSettings
from stream_fs.selector import Params, View, params
from stream_fs.service.configuration import sections
from stream_fs.service.configuration.secrets import Secret
from stream_fs.service.configuration.sections import Section
from stream_fs.service.configuration.values import as_tuple
from stream_fs.wire.dead_letters import dead_letter_limit
from stream_fs.wire.declared import DeclaredView, Limits

REBALANCE: Final = {
    "eager": Rebalance.EAGER,
    "cooperative": Rebalance.COOPERATIVE,
    "consumer": Rebalance.CONSUMER,
}

Views = Annotated[tuple[sections.DeclaredView, ...], BeforeValidator(as_tuple), Field(min_length=1)]


class Configuration(Section):
    """Every section of the file, checked; made by `load`."""

    stream: sections.Stream
    views: Views
    selector: sections.Selector
    chunk: sections.Chunk
    checkpoint: sections.Checkpoint
    merge: sections.Merge
    output: sections.Output
    dead_letters: sections.DeadLetters
    state: sections.State
    limits: sections.Limits
    kafka: sections.Kafka
    service: sections.Service
    log: sections.Log

    def params(self) -> Params:
        """The parameters of the selector."""
        views = [selector_view(view) for view in self.views]
        return params(views, **self.selector.model_dump())

    def state_topics(self) -> dict[str, str]:
        """By input topic, the topic of its state."""
        return {topic: self.state.topic.replace("{topic}", topic) for topic in self.stream.topics}

    def stream_settings(self) -> StreamSettings:
        """What the pipeline is told."""
        selector = self.params()
        span = self.chunk.max_span
        return StreamSettings(
            stream=self.stream.name,
            group=self.kafka.group,
            params=selector,
            views=tuple(
                DeclaredView(
                    view.name,
                    view.dimension,
                    declared.dtype,
                    view.transform or "minmax",
                    view.names,
                )
                for view, declared in zip(selector.views, self.views, strict=True)
            ),
            rankings_topic=self.output.topic,
            dead_letter_topic=self.dead_letters.topic,
            state_topics=self.state_topics(),
            record_format=self.stream.format,
            limits=Limits(self.limits.record_bytes, self.limits.views),
            chunk_records=self.chunk.records,
            chunk_max_span=None if span is None else max(1, round(span * 1000)),
            checkpoint_every=self.checkpoint.every_chunks,
            part_bytes=part_bytes(self.kafka.largest_message),
            output_top=None if self.output.top == "all" else self.output.top,
            output_format=self.output.format,
            linger=self.output.linger_seconds,
            dead_letters=DeadLetterSettings(
                policy=self.dead_letters.policy,
                max_ratio=self.dead_letters.max_ratio,
                tolerated=self.dead_letters.tolerated,
                max_open=self.dead_letters.max_open,
                max_open_bytes=self.dead_letters.max_open_bytes,
                largest=dead_letter_limit(self.kafka.largest_message),
            ),
            merge_every=self.merge.every_seconds if self.merge.enabled else None,
            start=self.stream.start,
        )

    def kafka_settings(self) -> ClientSettings:
        """What the Kafka clients are told; secrets are in it as they are."""
        kafka = self.kafka
        return ClientSettings(
            bootstrap=kafka.bootstrap,
            group=kafka.group,
            rebalance=REBALANCE[kafka.protocol],
            transaction_timeout=kafka.transaction_timeout,
            patience=kafka.call_timeout,
            largest_message=kafka.largest_message,
            properties={name: revealed(value) for name, value in kafka.properties.items()},
        )

    def secrets(self) -> frozenset[str]:
        """Every secret value, for whoever has to keep them out of a text.

        What is secret is told by the name of the property: a user's name may come from a variable,
        too, and would be cut out of every message that has the word.
        """
        return frozenset(
            value.reveal()
            for name, value in self.kafka.properties.items()
            if isinstance(value, Secret) and is_secret(name)
        )


def selector_view(view: sections.DeclaredView) -> View:
    """A declared view, as the selector knows it."""
    return View(view.name, view.dimension, view.transform, view.names)


def revealed(value: Property | Secret) -> Property:
    """The value of a property, as the client needs it."""
    return value.reveal() if isinstance(value, Secret) else value
