"""Whether all that is published fits into messages, and what to change where it does not."""

from __future__ import annotations

from bisect import bisect_left

from stream_fs.checkpoint import (
    PART_BYTES,
    Owner,
    largest_manifest,
    largest_merge_progress,
    part_bytes,
)
from stream_fs.service.configuration.configuration import Configuration
from stream_fs.wire.declared import Format
from stream_fs.wire.ranking_size import largest_ranking
from stream_fs.wire.rankings import Top, top_counts


def ranking_bytes(
    configuration: Configuration,
    top: Top,
    format: Format,
    partitions: int = 0,
) -> int:
    """Bytes that no ranking of this stream exceeds; a merged one lists so many partitions."""
    params = configuration.params()
    return max(
        largest_ranking(
            params,
            top_counts(params, top),
            stream=configuration.stream.name,
            topic=topic,
            partitions=partitions,
            format=format,
        )
        for topic in configuration.stream.topics
    )


def ranking_problem(configuration: Configuration, partitions: int = 0) -> str | None:
    """What to change in output.top, or instead, so that every ranking can be published.

    None where it can. Looks at nothing but stream, views, selector, output and
    kafka.largest_message.
    """
    limit, output = configuration.kafka.largest_message, configuration.output
    top = None if output.top == "all" else output.top

    def size(top: Top, format: Format) -> int:
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
    if output.format == "json" and size(top, "msgpack") <= limit:
        ways.append('set output.format to "msgpack"')
    return (
        f"a ranking may have {needed} bytes, more than kafka.largest_message "
        f"({limit}): {', or '.join(ways)}"
    )


def state_problem(configuration: Configuration, partitions: int = 0) -> str | None:
    """What to change in kafka.largest_message, or instead, so that the state can be published.

    None where it can. Snapshots are cut into parts that fit, but not their manifests, nor the
    progress of a merge, which lists so many partitions. Reads only stream, views, selector, merge,
    kafka.group and kafka.largest_message.
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
