"""Input: several topics and partitions, every form of a record, chunks by time."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from stream_fs.pipeline.ports import Partition
from stream_fs.wire.records.encoder import Sparse, encode_record
from tests.integration.service.conftest import MakeMember, MakeStream
from tests.integration.service.stream import CHUNK, FIRST, Stream, chunks, rows
from tests.integration.service.undisturbed import assert_undisturbed, undisturbed


def test_several_topics_with_several_partitions(
    make_stream: MakeStream, member: MakeMember
) -> None:
    stream = make_stream(inputs=2, partitions=2)
    assert len(stream.partitions) == 4
    stream.feed_all(3)
    stream.feed([b"bad"], stream.partitions[2])
    stream.feed_all(1, seed=1)
    one = member(stream)
    one.until(lambda: all_reached(stream, 4), "four chunks of everything")
    assert one.held == set(stream.partitions)
    assert_undisturbed(stream, 4)
    assert [len(stream.letters()[place]) for place in stream.partitions] == [0, 0, 1, 0]
    keys = {published.key for found in stream.rankings().values() for published in found}
    assert keys == {f"{stream.name}/{place}".encode() for place in stream.partitions}


@pytest.mark.parametrize("format", ["msgpack", "json"])
def test_every_form_of_a_record_means_the_same(
    format: str, make_stream: MakeStream, member: MakeMember
) -> None:
    stream = make_stream({"stream.format": format})
    plain = list(rows(FIRST + 2 * CHUNK))
    forms = [_listed, _sparse, _packed]
    stream.feed([forms[index % 3](views, format) for index, views in enumerate(plain)])
    one = member(stream)
    one.completes(3)
    assert_undisturbed(stream, 3)

    published = stream.rankings()
    # The same rows, all of them packed.
    for index, message in enumerate(stream.fed[stream.only]):
        packed = encode_record(plain[index])
        assert (message.value != packed) or (format == "msgpack" and index % 3 == 2)
        stream.fed[stream.only][index] = message._replace(value=packed)
    expected, _ = undisturbed(stream, {"stream.format": "msgpack"})
    assert published == expected


def _packed(views: dict[str, Any], format: Any) -> bytes:
    return encode_record(views, format=format)


def _listed(views: dict[str, Any], format: Any) -> bytes:
    return encode_record(views, "an id", format=format, form="list")


def _sparse(views: dict[str, Any], format: Any) -> bytes:
    everywhere = {name: Sparse(np.arange(len(row)), row) for name, row in views.items()}
    absent = {name: None for name in ("a", "b") if name not in views}
    return encode_record({**everywhere, **absent}, format=format)


def test_chunks_are_closed_by_time(make_stream: MakeStream, member: MakeMember) -> None:
    stream = make_stream({"chunk.max_span": 10.0})
    times = [
        *range(0, FIRST * 1000, 1000),  # the first chunk is formed by its count alone
        *range(100_000, 111_000, 1000),  # eleven records within ten seconds
        *[111_000] * CHUNK,  # as many as a chunk has
        *[200_000] * 3,
        *[300_000] * 3,  # closes the one before, and stays open
    ]
    values = chunks(4)[: len(times)]
    assert len(values) == len(times)
    half = FIRST + 11 + 5
    stream.feed(values[:half], timestamps=times[:half])
    first = member(stream)
    first.completes(2)
    first.kill()
    stream.feed(values[half:], timestamps=times[half:])
    second = member(stream)
    second.completes(4)
    published = [json.loads(found.value or b"") for found in stream.rankings()[stream.only]]
    assert [value["records"]["chunk"] for value in published] == [FIRST, 11, CHUNK, 3]
    assert_undisturbed(stream, 4)


def all_reached(stream: Stream, chunk: int) -> bool:
    reached: dict[Partition, int] = stream.reached
    return all(reached[partition] >= chunk for partition in stream.partitions)
