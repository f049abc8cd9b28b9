"""The published schemas: examples, codecs and lists agree with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import orjson
import pytest
from hypothesis import given

from stream_fs.records import Reason
from stream_fs.wire import DeclaredView, RecordDecoder, decode_ranking, encode_ranking
from tests.support.records import INVALID_RECORDS, SampleRecord, sample_records
from tests.support.schemas import SCHEMAS, errors_in

EXAMPLES = sorted((SCHEMAS / "examples").glob("*.json"))
RECORD_VIEWS = [
    DeclaredView("vibration", 4),
    DeclaredView("acoustic", 3),
    DeclaredView("thermal", 2),
    DeclaredView("words", 10_000, transform="unit"),
    DeclaredView("layout", 3),
]


def examples(kind: str) -> list[Path]:
    return [path for path in EXAMPLES if path.name.split(".")[0] == kind]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_valid(path: Path) -> None:
    assert errors_in(path.name.split(".")[0], json.loads(path.read_text())) == []


def test_every_schema_has_an_example() -> None:
    for schema in SCHEMAS.glob("*.v1.json"):
        assert examples(schema.name.split(".")[0]), schema.name


@pytest.mark.parametrize("path", examples("input-record"), ids=lambda path: path.stem)
def test_every_example_of_a_record_can_be_decoded(path: Path) -> None:
    assert RecordDecoder(RECORD_VIEWS, "json").decode([path.read_bytes()]).bad == ()


@pytest.mark.parametrize("path", examples("ranking"), ids=lambda path: path.stem)
def test_every_example_of_a_ranking_can_be_decoded(path: Path) -> None:
    message = decode_ranking(path.read_bytes())
    assert orjson.loads(encode_ranking(message)) == orjson.loads(path.read_bytes())


@given(sample_records(packing=False))
def test_every_accepted_record_is_valid(record: SampleRecord) -> None:
    assert errors_in("input-record", orjson.loads(record.encoded("json"))) == []


STRUCTURE = [
    (reason, plain)
    for reason, plain in INVALID_RECORDS
    if reason in ("malformed", "version", "all_missing") and plain != {"v": 1.0}
]


@pytest.mark.parametrize(
    "plain", [plain for _, plain in STRUCTURE], ids=map(str, range(len(STRUCTURE)))
)
def test_invalid_records_are_not_valid(plain: Any) -> None:
    # In JSON Schema 1.0 is the integer 1.
    whole = not isinstance(plain, dict) or type(plain.get("v")) is not float
    assert bool(errors_in("input-record", plain)) == whole


def test_a_ranking_of_a_partition_is_not_merged() -> None:
    for path in examples("ranking"):
        plain = json.loads(path.read_text())
        other = {"partition": "merged", "merged": "partition"}[plain["scope"]]
        assert errors_in("ranking", plain | {"scope": other})


def test_the_reasons_are_those_of_the_schema() -> None:
    schema = json.loads((SCHEMAS / "dead-letter-headers.v1.json").read_text())
    listed = [choice["const"] for choice in schema["properties"]["stream-fs-reason"]["oneOf"]]
    assert listed == list(get_args(Reason))
