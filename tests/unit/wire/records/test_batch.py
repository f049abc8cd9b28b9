from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from stream_fs.errors import InvalidChunk
from stream_fs.selector import View, read_chunk
from stream_fs.wire import Batch, DeclaredView, RecordDecoder, Sparse, encode_record, to_chunk
from tests.support.records import VIEWS, SampleRecord, matrix_bytes, sample_records


def chunk_bytes(chunk: Any) -> dict[str, Any]:
    return {
        name: (part.present.tolist(), type(part.rows), matrix_bytes(part.rows))
        for name, part in chunk.views.items()
    }


@given(st.lists(sample_records(), min_size=1, max_size=8), st.data())
def test_a_chunk_does_not_depend_on_the_batches(
    expected: list[SampleRecord], data: st.DataObject
) -> None:
    values = [record.encoded("msgpack") for record in expected]
    decoder = RecordDecoder(VIEWS)
    whole = to_chunk([decoder.decode(values)])
    parts: list[Batch] = []
    left = values
    while left:
        count = data.draw(st.integers(1, len(left)))
        batch, left = decoder.decode(left[:count]), left[count:]
        middle = data.draw(st.integers(0, len(batch)))
        parts += [batch.take(0, middle), batch.take(middle, len(batch))]
    again = to_chunk(parts)
    assert again.size == whole.size == len(expected)
    assert chunk_bytes(again) == chunk_bytes(whole)


def test_take_keeps_positions_and_order() -> None:
    values = [encode_record({"a": [i, i], "b": [i] if i % 2 else None}) for i in range(6)]
    values[2] = b"?"
    views = [DeclaredView("a", 2), DeclaredView("b", 1)]
    batch = RecordDecoder(views).decode(values)
    part = batch.take(1, 4)
    assert part.good.tolist() == [1, 3, 4]
    assert part.views["a"].dense()[:, 0].tolist() == [1, 3, 4]
    assert part.views["b"].dense()[:, 0].tolist() == [1, 3]
    assert part.views["b"].present.tolist() == [True, True, False]
    assert part.missing() == {"a": 0, "b": 1}
    assert part.bad == ()
    assert np.shares_memory(np.asarray(part.views["a"].rows), np.asarray(batch.views["a"].rows))
    assert len(batch.take(2, 2)) == 0


def test_a_single_batch_is_not_copied() -> None:
    batch = RecordDecoder([DeclaredView("a", 2)]).decode([encode_record({"a": [1, 2]})] * 3)
    chunk = to_chunk([batch])
    assert chunk.views["a"].rows is batch.views["a"].rows
    assert to_chunk([batch, batch.take(0, 0)]).views["a"].rows is batch.views["a"].rows


def test_a_view_without_rows_is_left_out() -> None:
    views = [DeclaredView("a", 2), DeclaredView("b", 1)]
    batch = RecordDecoder(views).decode([encode_record({"a": [1, 2], "b": None})] * 3)
    assert list(to_chunk([batch]).views) == ["a"]


def test_a_chunk_needs_records() -> None:
    empty = RecordDecoder([DeclaredView("a", 2)]).decode([b"?"])
    for parts in ([], [empty]):
        with pytest.raises(InvalidChunk):
            to_chunk(parts)


def test_the_selector_reads_the_same_chunk() -> None:
    rng = np.random.default_rng(5)
    dense, counts = rng.standard_normal((20, 4)).astype(np.float32), rng.poisson(0.3, (20, 9))
    has = rng.random(20) < 0.6
    words = scipy.sparse.csr_array(counts.astype(np.float64))
    values = [
        encode_record(
            {
                "dense": dense[i] if has[i] else None,
                "words": Sparse(np.flatnonzero(counts[i]), counts[i][counts[i] > 0]),
            },
            dtypes={"words": "float64"},
        )
        for i in range(20)
    ]
    declared = [DeclaredView("dense", 4), DeclaredView("words", 9, "float64", "unit")]
    chunk = to_chunk([RecordDecoder(declared).decode(values)])
    wanted = read_chunk(
        [View("dense", 4, "minmax"), View("words", 9, "unit")],
        {"dense": dense, "words": words},
        {"dense": has},
    )
    assert chunk_bytes(chunk) == chunk_bytes(wanted)


def test_one_dense_row_makes_a_short_chunk_dense() -> None:
    decoder = RecordDecoder([DeclaredView("a", 3)])
    sparse, dense = encode_record({"a": Sparse([1], [2.0])}), encode_record({"a": [-1, 0, 3]})
    assert isinstance(to_chunk([decoder.decode([sparse])]).views["a"].rows, scipy.sparse.csr_array)
    mixed = to_chunk([decoder.decode([sparse, dense])]).views["a"].rows
    assert isinstance(mixed, np.ndarray)
    assert mixed.tolist() == [[0, 2, 0], [-1, 0, 3]]


def test_a_chunk_with_few_values_stays_sparse_with_a_dense_row() -> None:
    """Its memory does not follow rows × features, however the records were divided."""
    decoder = RecordDecoder([DeclaredView("a", 50)])
    values = [encode_record({"a": Sparse([i], [2.0])}) for i in range(12)]
    values[4] = encode_record({"a": [-0.0, -1.0, *[0.0] * 48]})
    together = to_chunk([decoder.decode(values)])
    divided = to_chunk([decoder.decode(values[i:][:2]) for i in range(0, 12, 2)])
    taken = decoder.decode(values)
    taken_apart = to_chunk([taken.take(0, 4), taken.take(4, 5), taken.take(5, 12)])
    for chunk in (together, divided, taken_apart):
        rows: Any = chunk.views["a"].rows
        assert isinstance(rows, scipy.sparse.csr_array)
        assert rows.nnz == 11 + 50
        assert chunk_bytes(chunk) == chunk_bytes(together)
        assert rows[[4]].toarray().tolist() == [[0.0, -1.0, *[0.0] * 48]]


def test_a_chunk_with_several_dense_rows_is_dense() -> None:
    """CSR would take more memory and several times as long."""
    decoder = RecordDecoder([DeclaredView("a", 50)])
    values = [encode_record({"a": Sparse([i], [2.0])}) for i in range(12)]
    values[3:5] = [encode_record({"a": [1.0] * 50})] * 2
    assert isinstance(to_chunk([decoder.decode(values)]).views["a"].rows, np.ndarray)
