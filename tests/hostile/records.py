"""Records, rankings and dead letters, from topics to which others write."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

import msgpack
import numpy as np
import orjson

from stream_fs.cli.ranking_display import PlainLines
from stream_fs.pipeline.ports import OutgoingRecord
from stream_fs.records import BadRecord, Message
from stream_fs.replay.outputs import dead_letter_line
from stream_fs.replay.rewriter import Rewriter
from stream_fs.wire import (
    Continuity,
    DeclaredView,
    Limits,
    RankingMessage,
    RecordDecoder,
    RecordFormat,
    Sparse,
    as_json,
    dead_letter,
    decode_ranking,
    encode_ranking,
    encode_record,
    ranking_format,
    to_chunk,
)
from tests.hostile import documents
from tests.hostile.target import Target
from tests.support.rankings import sample_rankings

VIEWS = (
    DeclaredView("a", 3),
    DeclaredView("b", 4, "float64", "unit"),
    DeclaredView("c", 2, "float32", "none"),
)
WIDE = (DeclaredView("wide", 100_000), DeclaredView("a", 3))
"""Where records may be large, a hostile one could allocate far more."""
LIMITS = Limits(record_bytes=1 << 17)


def records(format: RecordFormat) -> list[bytes]:
    ones, rising = [1.0, 0.5, 2.0, 0.25], np.arange(4)
    examples: list[dict[str, Any]] = [
        {"a": ones[:3], "b": ones, "c": ones[:2]},
        {"a": ones[:3], "b": None},
        {"c": ones[:2], "a": ones[:3]},
        {"b": Sparse(rising[1:3], ones[:2]), "a": Sparse([], [])},
        {"a": [0, 1, 2.5]},
    ]
    dtypes = {"b": VIEWS[1].dtype}
    packed = [encode_record(views, "id", format=format, dtypes=dtypes) for views in examples]
    lists = [encode_record(views, format=format, form="list") for views in examples]
    return [*packed, *lists]


class Records:
    """Records among good ones: the result must not depend on the neighbours."""

    def __init__(self, format: RecordFormat, views: tuple[DeclaredView, ...] = VIEWS) -> None:
        self._format = format
        self._decoder = RecordDecoder(views, format, LIMITS)
        other: RecordFormat = "json" if format == "msgpack" else "msgpack"
        self._rewriters = (
            Rewriter(views, format, other),
            Rewriter(views, format, format, missing=0.5),
        )
        self._good = encode_record({"a": [1, 2, 3]}, format=format)

    def attempt_batch(self, values: Sequence[bytes]) -> None:
        """Decode a batch of hostile records, and the first one alone."""
        batch = self._decoder.decode([self._good, *values])
        bad_at = {bad.position: bad for bad in batch.bad}
        assert 0 not in bad_at
        for position, value in enumerate(values, 1):
            if position in bad_at:
                self._as_letter(value, bad_at[position])
            for rewriter in self._rewriters:
                rewriter(value)
        to_chunk([batch])
        alone = self._decoder.decode(values[:1]).bad
        assert [(bad.reason, bad.detail) for bad in alone] == [
            (bad.reason, bad.detail) for position, bad in bad_at.items() if position == 1
        ]

    def __call__(self, data: bytes) -> None:
        """Decode one record, alone and between good ones."""
        alone = self._decoder.decode([data])
        among = self._decoder.decode([self._good, data, self._good])
        expected = [(bad.reason, bad.detail) for bad in alone.bad]
        assert expected == [(bad.reason, bad.detail) for bad in among.bad]
        if len(alone):
            to_chunk([alone, among])
        for bad in alone.bad:
            self._as_letter(data, bad)
        for rewriter in self._rewriters:
            rewriter(data)

    @staticmethod
    def _as_letter(data: bytes, bad: BadRecord) -> None:
        message = Message("in", 0, 7, 0, data[:5], data, (("own", data[:9]),))
        letter = dead_letter(message, bad)
        assert all((value or b"").decode().isprintable() for _, value in letter.headers[1:])


def letter_headers(data: bytes) -> None:
    """Headers of a producer, in a dead letter that is written to a file."""
    name = data[:8].decode("utf-8", "replace")
    headers = ((name, data[8:]), ("stream-fs-reason", None), (name, None))
    bad = RecordDecoder(VIEWS, "json").decode([data]).bad
    for one in bad:
        letter = dead_letter(Message("in", 0, 1, 0, data, data, headers), one)
        line = dead_letter_line(
            OutgoingRecord("out", letter.key, letter.value, letter.headers, None)
        )
        assert orjson.loads(line)["headers"]["stream-fs-reason"] == one.reason
    ranking_format(((name, data), ("content-type", data)))


class Rankings:
    """Rankings as subscribers use them: checked for continuity, displayed, encoded again."""

    def __init__(self, format: RecordFormat, good: Sequence[RankingMessage]) -> None:
        self._format = format
        self._good = good

    def __call__(self, data: bytes) -> None:
        ranking = decode_ranking(data, self._format)
        continuity = Continuity()
        for one in (*self._good, ranking, *self._good):
            continuity.follow(one)
        assert decode_ranking(encode_ranking(ranking, self._format), self._format) == ranking
        orjson.loads(as_json(data, self._format))
        headers = (("content-type", b"application/json"),)
        shown = Message("rankings", 0, 1, 0, b"key", data, headers)
        PlainLines(io.StringIO(), 3, partitions=True).show(shown, ranking)


def targets() -> Iterator[Target]:
    writers = {"msgpack": documents.as_messagepack, "json": documents.as_json}
    formats: tuple[RecordFormat, RecordFormat] = ("msgpack", "json")
    for format in formats:
        seeds = records(format)
        parse = msgpack.unpackb if format == "msgpack" else orjson.loads
        parsed = [parse(seed) for seed in seeds]
        for name, views in (("records", VIEWS), ("records of wide views", WIDE)):
            reader = Records(format, views)
            yield Target(
                name=f"{name} in {format}",
                attempt=reader,
                attempt_batch=reader.attempt_batch,
                seeds=seeds,
                documents=parsed,
                write=writers[format],
                weight=10,
            )
        good = sample_rankings(3)
        rankings = [encode_ranking(message, format) for message in good]
        yield Target(
            name=f"rankings in {format}",
            attempt=Rankings(format, good),
            seeds=rankings,
            documents=[parse(ranking) for ranking in rankings],
            weight=16,
            write=writers[format],
        )
    yield Target(name="headers", attempt=letter_headers, seeds=[b"own-name", b"application/json"])
