"""The whole configuration, and the settings of pipeline and Kafka clients that follow from it."""

from __future__ import annotations

from bisect import bisect_left
from typing import Annotated, Final, get_args

from pydantic import BeforeValidator, Field

from stream_fs.checkpoint import (
    PART_BYTES,
    Owner,
    largest_manifest,
    largest_merge_progress,
    part_bytes,
)
from stream_fs.kafka.settings import ClientSettings, Property, Rebalance, is_secret
from stream_fs.pipeline.settings import DeadLetterSettings, StreamSettings
from stream_fs.selector import Params, View, params
from stream_fs.service.configuration import sections
from stream_fs.service.configuration.secrets import Secret
from stream_fs.service.configuration.sections import Section, as_tuple
from stream_fs.wire.dead_letters import dead_letter_limit
from stream_fs.wire.declared import DeclaredView, Dtype, Limits
from stream_fs.wire.rankings.codec import RankingFormat
from stream_fs.wire.rankings.message import Top, published_counts
from stream_fs.wire.rankings.size import largest_ranking


def ranking_bytes(
    configuration: Configuration,
    top: Top,
    format: RankingFormat,
    partitions: int = 0,
) -> int:
    """Upper bound of the bytes of a ranking; a merged one lists `partitions` sources."""
    params = configuration.params()
    return max(
        largest_ranking(
            params,
            published_counts(params, top),
            stream=configuration.stream.name,
            topic=topic,
            partitions=partitions,
            format=format,
        )
        for topic in configuration.stream.topics
    )


def ranking_problem(configuration: Configuration, partitions: int = 0) -> str | None:
    """Why a ranking may be too large to be published, with the remedies; None if none is.

    Reads only stream, views, selector, output and kafka.largest_message.
    """
    limit, output = configuration.kafka.largest_message, configuration.output
    top = None if output.top == "all" else output.top

    def size(top: Top, format: RankingFormat) -> int:
        return ranking_bytes(configuration, top, format, partitions)

    needed = size(top, output.format)
    if needed <= limit:
        return None
    ways = [f"raise kafka.largest_message to {needed} (and max.message.bytes of the topic)"]
    most = max(view.dimension for view in configuration.views)
    fitting = bisect_left(
        range(1, most + 1), limit + 1, key=lambda count: size(count, output.format)
    )
    if fitting:
        ways.append(f"set output.top to {fitting} or less")
    ways += [
        f'set output.format to "{format}"'
        for format in get_args(RankingFormat)
        if format != output.format and size(top, format) <= limit
    ]
    return (
        f"a ranking may have {needed} bytes, more than kafka.largest_message "
        f"({limit}): {', or '.join(ways)}"
    )


def state_problem(configuration: Configuration, partitions: int = 0) -> str | None:
    """Why the state may be too large to be published, with the remedies; None if it is not.

    Snapshots are divided into parts that fit. Their manifests are not, nor is the progress of a
    merge, which lists all `partitions`. Reads only stream, views, selector, merge, kafka.group and
    kafka.largest_message.
    """
    params, name = configuration.params(), configuration.stream.name
    topic = max(configuration.stream.topics, key=len)
    sizes = {"the manifest of a snapshot": largest_manifest(params, f"{name}/{topic}/{2**31 - 1}")}
    if configuration.merge.enabled:
        owner = Owner(name, configuration.kafka.group)
        progress = largest_merge_progress(params, owner, topic, partitions)
        sizes["the progress of the merge"] = progress
    what = max(sizes, key=sizes.__getitem__)
    largest, needed = configuration.kafka.largest_message, sizes[what]
    if needed <= part_bytes(largest):
        return None
    if needed <= PART_BYTES:
        return f"should be at least {needed}, which {what} may have, got {largest}"
    return (
        f"{what} may have {needed} bytes, and no message of the state has more than {PART_BYTES}: "
        "declare fewer views or features"
    )


REBALANCE: Final = {
    "eager": Rebalance.EAGER,
    "cooperative": Rebalance.COOPERATIVE,
    "consumer": Rebalance.CONSUMER,
}

Views = Annotated[tuple[sections.ViewSection, ...], BeforeValidator(as_tuple), Field(min_length=1)]


class Configuration(Section):
    """All sections, validated; created by `load`."""

    stream: sections.StreamSection
    views: Views
    selector: sections.SelectorSection
    chunk: sections.ChunkSection
    checkpoint: sections.CheckpointSection
    merge: sections.MergeSection
    output: sections.OutputSection
    dead_letters: sections.DeadLettersSection
    state: sections.StateSection
    limits: sections.LimitsSection
    kafka: sections.KafkaSection
    service: sections.ServiceSection
    log: sections.LogSection

    def params(self) -> Params:
        """The parameters of the selector."""
        views = [selector_view(view) for view in self.views]
        return params(views, **self.selector.model_dump())

    def state_topics(self) -> dict[str, str]:
        """The state topic of each input topic."""
        return {topic: self.state.topic.replace("{topic}", topic) for topic in self.stream.topics}

    def stream_settings(self) -> StreamSettings:
        """The settings of the pipeline."""
        selector = self.params()
        span = self.chunk.max_span
        return StreamSettings(
            stream=self.stream.name,
            group=self.kafka.group,
            params=selector,
            views=tuple(
                _declared_view(view, declared.dtype)
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
        """The settings of the Kafka clients, secrets included."""
        kafka = self.kafka
        return ClientSettings(
            bootstrap=kafka.bootstrap,
            group=kafka.group,
            rebalance=REBALANCE[kafka.protocol],
            transaction_timeout=kafka.transaction_timeout,
            timeout=kafka.call_timeout,
            largest_message=kafka.largest_message,
            properties={name: revealed(value) for name, value in kafka.properties.items()},
        )

    def secrets(self) -> frozenset[str]:
        """The secret values, to be redacted in texts.

        The name of the property decides: a user name may come from a variable as well, and is not
        redacted, since it may be an ordinary word of a message.
        """
        return frozenset(
            value.reveal()
            for name, value in self.kafka.properties.items()
            if isinstance(value, Secret) and is_secret(name)
        )


def _declared_view(view: View, dtype: Dtype) -> DeclaredView:
    assert view.transform is not None, "the parameters have given it that of the preset"
    return DeclaredView(view.name, view.dimension, dtype, view.transform, view.names)


def selector_view(view: sections.ViewSection) -> View:
    """The selector's view of a declared one."""
    return View(view.name, view.dimension, view.transform, view.names)


def revealed(value: Property | Secret) -> Property:
    """The plain value of a property."""
    return value.reveal() if isinstance(value, Secret) else value
