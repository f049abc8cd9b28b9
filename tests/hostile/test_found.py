"""Bytes that the fuzzer has found, or that were made after what it has found: each was a fault."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import orjson
import pytest
import scipy.sparse

from stream_fs.cli.ranking_display import moment
from stream_fs.errors import (
    BrokenFile,
    CorruptJournal,
    IncompatibleState,
    InvalidConfiguration,
    InvalidMessage,
)
from stream_fs.pipeline.ports import OutgoingRecord
from stream_fs.replay.journal import Journal, read_saved_run
from stream_fs.replay.outputs import dead_letter_line
from stream_fs.replay.rewriter import Rewriter
from stream_fs.replay.sources import array_rows
from stream_fs.selector import MultiViewSelector, View
from stream_fs.service.configuration import load
from stream_fs.wire import DeclaredView, Limits, RecordDecoder, decode_ranking, encode_ranking
from tests.support.configurations import LEAST
from tests.unit.wire.rankings.test_message import messages

VIEWS = (DeclaredView("a", 3), DeclaredView("b", 4, "float64", "unit"))
DEEP = b"\x91" * 1020 + b"\x01"
DEEP_JSON = b"[" * 1020 + b"]" * 1020


@pytest.mark.parametrize(
    "value",
    [
        b"\x82\xa1v" + DEEP + b"\xa5views\x80",
        b"\x83\xa1v\x01\xa2id" + DEEP + b"\xa5views\x80",
        b"\x82\xa1v\x01\xa5views" + DEEP,
        b"\x82\xa1v\x01\xa5views\x81\xa1a" + DEEP,
    ],
)
def test_a_deep_record_is_bad_and_not_an_error(value: bytes) -> None:
    """To show what was there in place of a number took more levels than Python has."""
    (bad,) = RecordDecoder(VIEWS).decode([value]).bad
    assert bad.reason in ("dimension", "malformed", "version")


@pytest.mark.parametrize("field", [b'{"v":%b}', b'{"v":1,"id":%b}', b'{"v":1,"views":%b}'])
def test_a_deep_record_in_json_is_bad_and_not_an_error(field: bytes) -> None:
    (bad,) = RecordDecoder(VIEWS, "json").decode([field % DEEP_JSON]).bad
    assert bad.reason in ("dimension", "malformed", "version")


def test_lists_in_lists_reserve_no_memory() -> None:
    """Each announced as many entries as the widest view has, and a thousand of them add up."""
    decoder = RecordDecoder([DeclaredView("wide", 100_000)], limits=Limits(1 << 20))
    value = b"\x82\xa1v\x01\xa5views\x81\xa4wide" + b"\xdd\x00\x01\x86\xa0" * 1000 + bytes(100_000)
    tracemalloc.start()
    (bad,) = decoder.decode([value]).bad
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert bad.reason == "malformed"
    assert peak < 20_000_000


def test_a_long_list_is_still_read() -> None:
    """One that is looked at twice, as it could reserve much: there are bytes of list headers."""
    decoder = RecordDecoder([DeclaredView("wide", 100_000)])
    numbers = [0xDC] * 50_000 + [0.5] * 50_000
    batch = decoder.decode([msgpack.packb({"v": 1, "views": {"wide": numbers}})])
    assert not batch.bad
    assert batch.views["wide"].dense().tolist() == [numbers]


RANKING = orjson.loads(encode_ranking(messages(3)[1]))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("schema", [[]]),
        ("schema", True),
        ("sequence", "2"),
        ("sequence", -1),
        ("sequence", {"a": 1}),
        ("stream", ["s"]),
        ("topic", {"a": []}),
        ("partition", 0.5),
        ("as_of", [1]),
        ("as_of", 2**64 - 1),
        ("offsets", {"from": "0", "next": 1}),
        ("records", {"chunk": 1, "total": [], "dead_letters": 0, "missing": {}}),
        ("views", [{"name": "plain", "weight": "1", "features": []}]),
        ("views", [{"name": "plain", "weight": 1.0, "features": [{"index": 0}]}]),
        ("views", [[]]),
        ("selection", {}),
        ("selection", {"plain": None, "named": None}),
        ("fit", {"iterations": 1, "converged": 1, "objective": 0.0, "orthogonality": 0.0}),
        ("sources", [{"topic": "t", "partition": 0}]),
    ],
)
def test_a_ranking_with_a_field_of_another_kind_is_none(field: str, value: Any) -> None:
    """They were taken, and what shows or follows rankings fell over them."""
    with pytest.raises(InvalidMessage):
        decode_ranking(orjson.dumps({**RANKING, field: value}))
    with pytest.raises(InvalidMessage):
        decode_ranking(msgpack.packb({**RANKING, field: value}), "msgpack")


def test_a_deep_ranking_is_none() -> None:
    with pytest.raises(InvalidMessage):
        decode_ranking(b'{"schema":' + DEEP_JSON + b"}")
    with pytest.raises(InvalidMessage):
        decode_ranking(b"\x81\xa6schema" + DEEP, "msgpack")


def test_a_time_beyond_the_calendar_is_shown_as_a_number() -> None:
    """A producer chooses the timestamps of its records, and the largest goes into the ranking."""
    assert moment(9_000_000_000_000_000) == "9000000000000000 ms"
    assert moment(0) == "1970-01-01T00:00:00Z"


def test_what_cannot_be_written_anew_stays_as_it_is() -> None:
    deep = b"\x82\xa1v\x01\xa5views\x81\xa1a" + b"\x91" * 600 + b"\x01"
    assert Rewriter(VIEWS, "msgpack", "msgpack", missing=0.5)(deep) == deep
    nested = b'{"v":1,"views":{"a":' + b"[" * 600 + b"]" * 600 + b"}}"
    written = Rewriter(VIEWS, "json", "msgpack")(nested)
    assert written == nested or written.startswith(b"\x82")  # how deep it goes is the library's


def test_headers_that_are_no_text_go_into_the_file_of_dead_letters() -> None:
    line = dead_letter_line(
        OutgoingRecord("out", None, b"", (("own", b"\xff\x00"), ("none", None)), None)
    )
    assert json.loads(line)["headers"] == {"own": "\\xff\x00", "none": None}


@pytest.mark.parametrize(
    "notes",
    [
        {"run": [1]},
        {"outputs": {"rankings": -1}},
        {"outputs": [1]},
        {"input": [1, 2]},
        {"input": {"a": 1}},
        {"input": [1, "2", 3]},
    ],
)
def test_notes_that_nobody_has_written(tmp_path: Path, notes: Any) -> None:
    journal = Journal(tmp_path / "journal")
    journal.commit([], notes)
    journal.close()
    with pytest.raises(CorruptJournal):
        read_saved_run(Journal(tmp_path / "journal", writing=False))


def array(header: bytes, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    return b"\x93NUMPY" + version + len(header).to_bytes(2, "little") + header + data


ARRAYS: dict[str, bytes] = {
    "more rows than memory": array(
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (100000000, 3), }\n", bytes(24)
    ),
    "more values than numbers": array(
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 3), }\n"
    ),
    "a nested header": array(b"[" * 2000),
    "a header that ends early": array(b"{'descr': '<f4', 'fortran_order': False, 'shape': (5, 3)"),
    "truth as a length": array(
        b"{'descr': '<M8[s]', 'fortran_order': True, 'shape': (True, 3), }\n", bytes(24)
    ),
    "another version": array(b"{}", version=b"\x09\x00"),
    "no array at all": b"bytes",
    "objects": array(b"{'descr': '|O', 'fortran_order': False, 'shape': (1, 3), }\n", b"cos\n"),
}


@pytest.mark.parametrize("member", ARRAYS.values(), ids=list(ARRAYS))
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_arrays_that_are_not_what_they_say(tmp_path: Path, member: bytes, method: int) -> None:
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("a.npy", member)
        archive.writestr("header.npy", member)
    with pytest.raises(BrokenFile):
        list(array_rows(path, VIEWS[:1], "msgpack"))
    with pytest.raises(IncompatibleState):
        MultiViewSelector.load(path)


@pytest.mark.parametrize(("place", "value"), [(8, 0x63), (8, 0x0E), (6, 0x21), (4, 0xFF)])
def test_archives_that_zipfile_does_not_know(tmp_path: Path, place: int, value: int) -> None:
    """Another method of compression, flag or version, in the directory and at the member."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, a=np.ones((5, 3)))
    data = bytearray(buffer.getvalue())
    data[place] = data[data.rindex(b"PK\x01\x02") + place + 2] = value
    (tmp_path / "x.npz").write_bytes(data)
    with pytest.raises(BrokenFile):
        list(array_rows(tmp_path / "x.npz", VIEWS[:1], "msgpack"))


def test_a_compressed_archive_takes_no_more_memory_than_a_block(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "x.npz", a=np.zeros((2_000_000, 3), np.float32))
    assert (tmp_path / "x.npz").stat().st_size < 100_000
    tracemalloc.start()
    for _, _ in zip(
        range(1000), array_rows(tmp_path / "x.npz", VIEWS[:1], "msgpack"), strict=False
    ):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


def test_arrays_by_column_and_by_row_are_the_same_records(tmp_path: Path) -> None:
    given = np.arange(15.0).reshape(5, 3)
    np.savez(tmp_path / "rows.npz", a=given)
    np.savez(tmp_path / "columns.npz", a=np.asfortranarray(given))
    by_row, by_column = (
        list(array_rows(tmp_path / f"{name}.npz", VIEWS[:1], "msgpack"))
        for name in ("rows", "columns")
    )
    assert by_row == by_column
    assert len(by_row) == 5


def saved(path: Path, change: Callable[[dict[str, Any]], None], *, sparse: bool = False) -> None:
    """A model that waits for more rows, with something in its file changed."""
    given: Any = np.ones((5, 3))
    selector = MultiViewSelector([View("a", 3)], 2)
    selector.partial_fit({"a": scipy.sparse.csr_array(given) if sparse else given}).save(path)
    with np.load(path, allow_pickle=False) as archive:
        content = {name: archive[name] for name in archive.files}
    header = json.loads(content.pop("header").tobytes())
    change(content if sparse else header)
    content["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **content)


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header["state"].update(total=float("inf")),
        lambda header: header["state"]["params"]["views"][0].update(dimension=2**62),
        lambda header: header["state"]["params"].update(clusters=2**40),
        lambda header: header["state"]["params"].update(sketch=2**40),
        lambda header: header["state"].update(params=[]),
        lambda header: header.update(waiting=[10**15]),
        lambda header: header.update(waiting=[[]]),
    ],
    ids=["total", "dimension", "clusters", "sketch", "params", "waiting", "waiting lists"],
)
def test_a_model_file_that_asks_for_much(tmp_path: Path, change: Any) -> None:
    saved(tmp_path / "model", change)
    with pytest.raises(IncompatibleState):
        MultiViewSelector.load(tmp_path / "model")


def test_sparse_rows_that_point_elsewhere_are_refused(tmp_path: Path) -> None:
    """SciPy would have read, and written, wherever they point."""
    for name, value in (
        ("indices", np.full(15, 1_000_000, np.int32)),
        ("indices", np.full(15, -5, np.int32)),
        ("indptr", np.array([0, 90, 6, 9, 12, 15], np.int32)),
    ):

        def change(content: dict[str, Any], name: str = name, value: Any = value) -> None:
            assert f"waiting.0.0.{name}" in content
            content[f"waiting.0.0.{name}"] = value

        saved(tmp_path / "model", change, sparse=True)
        with pytest.raises(IncompatibleState, match="sparse rows"):
            MultiViewSelector.load(tmp_path / "model")


@pytest.mark.parametrize(
    "text",
    [
        LEAST + "[chunk]\nrecords = " + "[" * 5000 + "]" * 5000,
        LEAST + "[chunk]\nrecords" + ".a" * 3000 + " = 1\n",
        LEAST + "[chunk]\nrecords = " + "1" * 5000,
    ],
    ids=["lists", "tables", "digits"],
)
def test_a_configuration_that_is_too_deep_or_too_long(tmp_path: Path, text: str) -> None:
    path = tmp_path / "stream.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidConfiguration, match=r"stream\.toml"):
        load(path, {})


@pytest.mark.parametrize(
    "variable",
    [
        {"STREAM_FS_CHUNK__RECORDS": "1" * 5000},
        {"STREAM_FS_CHUNK__RECORDS": "[" * 5000},
        {"STREAM_FS_CHUNK__RECORDS": "{a" + ".a" * 3000 + "=1}"},
        {"STREAM_FS_CHUNK" + "__A" * 3000: "1"},
    ],
)
def test_a_variable_that_is_too_deep_or_too_long(tmp_path: Path, variable: dict[str, str]) -> None:
    path = tmp_path / "stream.toml"
    path.write_text(LEAST, encoding="utf-8")
    with pytest.raises(InvalidConfiguration):
        load(path, variable)


def test_a_file_of_names_without_an_end(tmp_path: Path) -> None:
    path = tmp_path / "stream.toml"
    path.write_text(LEAST.replace("dimension = 4", 'dimension = 4\nnames = "/dev/zero"'))
    with pytest.raises(InvalidConfiguration, match=r"more than \d+ bytes"):
        load(path, {})
