from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast, get_args

import pytest

import stream_fs
from stream_fs.cli import main
from stream_fs.errors import InvalidParameter
from stream_fs.replay import Rewriter, Source, file_format
from stream_fs.selector.arrays import Indices
from stream_fs.service.configuration.sections import StreamSection
from stream_fs.wire import (
    DEFAULT_FORMAT,
    FORMATS,
    DeclaredView,
    RecordDecoder,
    RecordFormat,
    encode_record,
)
from stream_fs.wire.records.formats import FormatDefinition, RecordFiles
from stream_fs.wire.records.parser import ParsedRecords, RecordError, parse_record

VIEWS = (DeclaredView("a", 2), DeclaredView("b", 1))
PACKAGE = Path(stream_fs.__file__).parent


def test_every_format_is_registered() -> None:
    assert set(FORMATS) == set(get_args(RecordFormat))
    assert DEFAULT_FORMAT in FORMATS


def test_names_and_suffixes_of_files_are_distinct() -> None:
    files = [format.files for format in FORMATS.values()]
    names = [one.name for one in files]
    suffixes = [suffix for one in files for suffix in one.suffixes]
    assert len(set(names)) == len(names)
    assert len(set(suffixes)) == len(suffixes)


@pytest.mark.parametrize("format", FORMATS)
def test_records_begin_like_their_own_format(format: RecordFormat) -> None:
    value = encode_record({"a": [1, 2]}, format=format)
    assert [name for name in FORMATS if FORMATS[name].begins_like(value)] == [format]


def test_the_configuration_lists_all_formats() -> None:
    field = StreamSection.model_fields["format"]
    assert get_args(field.annotation) == get_args(RecordFormat)
    assert field.description == f"Format of the input records: {' or '.join(FORMATS)}."


def test_no_other_module_lists_the_formats() -> None:
    """So a new format takes its reader and its entry, and nothing else."""
    names = {*FORMATS, *(format.files.name for format in FORMATS.values())}
    listing = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        constants = [
            node.value
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Constant) and node.value in names
        ]
        if len(set(constants)) > 1:
            listing[path.relative_to(PACKAGE).as_posix()] = constants
    # Rankings have formats of their own, the values of `output.format`.
    assert set(listing) == {"wire/records/formats.py", "wire/rankings/codec.py"}


# --- a format of text: `a=1,2;b=3` ----------------------------------------------------------------

TEXT = cast("RecordFormat", "text")


class TextReader:
    def __init__(self, views: Sequence[DeclaredView], _: object) -> None:
        self._views = {view.name: view for view in views}

    def read(self, values: Sequence[bytes], _: Indices) -> ParsedRecords:
        parsed = ParsedRecords.empty(self._views)
        for record, value in enumerate(values):
            try:
                parsed.add(record, parse_record(self._parse(value), self._views))
            except RecordError as error:
                parsed.reject(record, error)
        return parsed

    def _parse(self, value: bytes) -> Any:
        try:
            return parse_text(value)
        except ValueError:
            raise RecordError("malformed", "not text") from None


def parse_text(value: bytes) -> Any:
    views = dict(view.split("=") for view in value.decode().split(";"))
    return {"v": 1, "views": {n: [float(x) for x in row.split(",")] for n, row in views.items()}}


def encode_text(document: dict[str, Any]) -> bytes:
    views = {name: row for name, row in document["views"].items() if row is not None}
    return ";".join(f"{n}={','.join(map(str, row))}" for n, row in views.items()).encode()


def split_text(file: BinaryIO, _: str, __: int) -> Iterator[tuple[bytes, int]]:
    end = 0
    for line in file:
        end += len(line)
        yield line.strip(), end


@pytest.fixture
def text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers the format, as an entry in `FORMATS` would."""
    definition = FormatDefinition(
        title="text",
        reader=TextReader,
        begins_like=lambda value: value[1:2] == b"=",
        encode=encode_text,
        parse=parse_text,
        has_bytes=False,
        files=RecordFiles(
            name="lines", suffixes=(".text",), description="views, one line per record",
            split=split_text,
        ),
    )  # fmt: skip
    monkeypatch.setitem(FORMATS, TEXT, definition)


@pytest.mark.usefixtures("text")
def test_a_new_format_is_decoded_and_encoded() -> None:
    values = [encode_record({"a": [1, 2], "b": [n]}, format=TEXT) for n in range(3)]
    assert values[2] == b"a=1,2;b=2"
    batch = RecordDecoder(VIEWS, TEXT).decode([*values, b"?", None, b"c=1"])
    assert batch.views["b"].dense().tolist() == [[0], [1], [2]]
    assert [(bad.position, bad.reason) for bad in batch.bad] == [
        (3, "malformed"),
        (4, "tombstone"),
        (5, "unknown_view"),
    ]


@pytest.mark.usefixtures("text")
def test_a_new_format_is_recognised_where_another_is_declared() -> None:
    (bad,) = RecordDecoder(VIEWS, "json").decode([b"a=1,2"]).bad
    assert bad.detail.endswith("; it begins like text, see stream.format")
    (bad,) = RecordDecoder(VIEWS, TEXT).decode([b'{"v": 1}']).bad
    assert bad.detail == "not text; it begins like JSON, see stream.format"


@pytest.mark.usefixtures("text")
def test_files_of_a_new_format_are_read_and_rewritten(tmp_path: Path) -> None:
    path = tmp_path / "x.text"
    path.write_bytes(b"a=1,2;b=3\na=4,5\n")
    source = Source(str(path), file_format(str(path)), VIEWS, DEFAULT_FORMAT)
    assert source.format == TEXT
    values = list(source)
    assert values == [b"a=1,2;b=3", b"a=4,5"]
    assert source.done == source.size
    rewrite = Rewriter(VIEWS, TEXT, "msgpack")
    rows = RecordDecoder(VIEWS).decode([rewrite(value) for value in values]).views["a"].dense()
    assert rows.tolist() == [[1, 2], [4, 5]]
    packed = encode_record({"a": [1.5, 2]})
    assert Rewriter(VIEWS, "msgpack", TEXT)(packed) == b"a=1.5,2.0"


@pytest.mark.usefixtures("text")
def test_the_help_lists_a_new_format(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main.main(["replay", "--help"])
    assert "  lines    .text            views, one line per record" in capsys.readouterr().out
    with pytest.raises(InvalidParameter, match=r"\.text"):
        file_format("unknown")
