"""Records of a stream with clear clusters, missing views and bad records, without the package.

Values are multiples of 1/64, so that they are the same numbers in every format. The features of a
view differ in how far the clusters lie apart, by far more than rounding: their order is robust.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

import msgpack
import numpy as np

Encoding = Literal["packed32", "packed64", "lists", "json", "sparse", "sparse json"]
Row = list[float] | None

CLUSTERS: Final = 3
DENSE: Final[Mapping[str, int]] = {"size": 7, "colour": 6, "shape": 4}
SPARSE: Final[Mapping[str, int]] = {"words": 48, "links": 32, "size": 5}
"""Views of which few values are stored, and a dense one."""
LARGEST_RECORD: Final = 3000
"""Bytes of a record; a larger one is bad."""
FIRST_TIMESTAMP: Final = 1_700_000_000_000

_STEP: Final = 64
_MISSING: Final = 0.25
_BAD_EVERY: Final = 7
_HEADERS: Final[list[list[Any]]] = [
    ["trace", b"\x00\x01"],
    ["origin", None],
    ["trace", "größer".encode()],
]


class Input(NamedTuple):
    """One message of an input topic."""

    value: bytes | None
    key: bytes | None
    headers: list[list[Any]]
    timestamp: int


def dimensions(encoding: Encoding) -> Mapping[str, int]:
    """The views of a stream, and how many features each has."""
    return SPARSE if encoding.startswith("sparse") else DENSE


def rows(encoding: Encoding, seed: int, count: int) -> Iterator[dict[str, Row]]:
    """Good records; at least one view of each is there."""
    rng = np.random.default_rng([seed, 7])
    views = dimensions(encoding)
    for _ in range(count):
        cluster = int(rng.integers(CLUSTERS))
        found = {name: _row(rng, name, width, cluster) for name, width in views.items()}
        missing = [name for name in views if rng.random() < _MISSING]
        for name in missing[: len(views) - 1]:
            found[name] = None
        yield found


def _row(rng: np.random.Generator, name: str, width: int, cluster: int) -> Row:
    values = _counts if name in ("words", "links") else _measures
    return values(rng, width, cluster)


def _measures(rng: np.random.Generator, width: int, cluster: int) -> list[float]:
    """Each feature tells one cluster from the others, the first ones best, the last one none."""
    strength = 1.0 - np.arange(width) / (width - 1)
    apart = (np.arange(width) % CLUSTERS == cluster) * strength
    noise = rng.random(width) * (0.2 + 0.4 * (1 - strength))
    return quantised(0.1 + apart + noise)


def _counts(rng: np.random.Generator, width: int, cluster: int) -> list[float]:
    """Few features of a record are above zero; those of its cluster most often."""
    values = np.zeros(width)
    values[3 * rng.integers(width // 12) + cluster] = 3 + rng.integers(3)
    values[3 * rng.integers(width // 6) + cluster] += 1 + rng.integers(2)
    values[rng.integers(width)] += 1
    return quantised(values)


def quantised(values: Any) -> list[float]:
    """The nearest multiples of 1/64."""
    return [float(value) for value in np.round(np.asarray(values) * _STEP) / _STEP]


def encoded(row: Mapping[str, Row], encoding: Encoding, number: int) -> bytes:
    """A record as a producer writes it."""
    views = {
        name: None if values is None else _values(values, encoding, name)
        for name, values in row.items()
    }
    return document({"v": 1, "id": f"r{number}", "views": views}, encoding)


def document(plain: Any, encoding: Encoding) -> bytes:
    """Plain data in the format of the stream."""
    if "json" in encoding:
        return json.dumps(plain, separators=(",", ":")).encode()
    packed: bytes = msgpack.packb(plain)
    return packed


def _values(values: list[float], encoding: Encoding, name: str) -> Any:
    numbers = np.array(values)
    if name in ("words", "links"):
        stored = np.flatnonzero(numbers)
        if "json" in encoding:
            return {"i": stored.tolist(), "x": numbers[stored].tolist()}
        return {"i": stored.astype("<u4").tobytes(), "x": numbers[stored].astype("<f4").tobytes()}
    match encoding:
        case "packed32" | "sparse":
            return numbers.astype("<f4").tobytes()
        case "packed64":
            return numbers.astype("<f8").tobytes()
        case _:
            return values


def bad_values(encoding: Encoding, *, framed: bool) -> list[bytes | None]:
    """Records that cannot be used, of every kind; `framed` ones can be separated in a file."""
    first, second, third = dimensions(encoding)
    width = dimensions(encoding)[third]

    def record(views: Any, **others: Any) -> bytes:
        return document({"v": 1, "id": "bad", "views": views, **others}, encoding)

    found: list[bytes | None] = [
        record({third: [0.5] * (width + 1)}),
        record({third: [0.5] * (width - 1) + ["much"]}),
        record({"weight": [1.0, 2.0]}),
        record({first: None, second: None, third: None}),
        record({first: None, third: [0.5] * width}, v=9),
        record([1, 2]),
        record({third: [1e60] * width}),
        record({third: [0.25] * width}, id="long" * LARGEST_RECORD),
        document({"id": "bare"}, encoding),
        record({third: "text"}),
        record({third: 5}),
        record({third: [[[[0.5]]]]}),
        record({third: {"i": [0, 1], "x": [1.0]}}),
        record({third: {"i": [width], "x": [1.0]}}),
        record({third: {"i": [0], "x": ["one"]}}),
        record({third: {"i": [0.5], "x": [1.0]}}),
        record({third: {"i": "0", "x": [1.0]}}),
        record({third: {"i": [0], "x": "1"}}),
        record({third: {"index": [0]}}),
        record({third: [0.5] * width}, id=5),
        record({third: [0.5] * width}, v=None),
        record({f"v{number}": None for number in range(300)}),
    ]
    if "json" not in encoding:
        found.append(record({third: [0.5] * (width - 1) + [float("nan")]}))
        found.append(record({third: [0.5] * (width - 1) + [float("inf")]}))
        found.append(record({third: b"\x00" * 5}))
        found.append(record({third: {"i": b"\x00" * 3, "x": b"\x00" * 4}}))
        found.append(record({third: {"i": b"\x00" * 4, "x": b"\x00" * 3}}))
        found.append(b"\x0c")
    else:
        found += [b"not a record", b'{"v": 1, "views": {']
    if encoding.startswith("sparse"):
        found.append(record({third: [-0.5] * width}))
        found.append(record({first: {"i": [5, 3], "x": [1.0, 1.0]}}))
    if not framed:
        found += [b"", None, b"\xc1\xff", "größer".encode()]
        found += [b"\x00\x00\x00\x00\x07Avro", b'\xef\xbb\xbf{"v":1}', b"\x82\xa1v\x01"]
    return found


def messages(
    encoding: Encoding, seed: int, count: int, *, framed: bool = False, jumps: bool = False
) -> list[Input]:
    """The messages of one partition: so many good records, with bad ones in between and in a row.

    `jumps` lets the time between two of them be long now and then.
    """
    bad = bad_values(encoding, framed=framed)
    found: list[Input] = []
    time = FIRST_TIMESTAMP
    spoilt = 0
    for number, row in enumerate(rows(encoding, seed, count)):
        time += 5_000 if jumps and number % 37 == 36 else 10
        key = f"k{number % 5}".encode() if number % 3 else None
        found.append(Input(encoded(row, encoding, number), key, [], time))
        if number % _BAD_EVERY == _BAD_EVERY - 1:
            for _ in range(3 if number % 5 == 0 else 1):
                value = bad[spoilt % len(bad)]
                headers = _HEADERS if spoilt % 4 == 1 else []
                found.append(Input(value, b"bad" if spoilt % 3 else None, headers, time))
                spoilt += 1
    return found
