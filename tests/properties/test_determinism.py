"""The same input gives the same bytes, at once or with the selector saved in between."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_fs.selector import MultiViewSelector, View
from stream_fs.selector.serialization import read_file
from stream_fs.selector.state import flatten, unflatten
from tests.support.random_streams import Layout, dense, layouts, random_stream, state_bytes

PRESETS = ["default", "paper", "classical"]


def selector(layout: Layout, **setting: Any) -> MultiViewSelector:
    views = [View(name, d) for name, d in zip(layout.names, layout.dims, strict=True)]
    return MultiViewSelector(views, layout.clusters, max_iterations=12, **setting)


def same(one: MultiViewSelector, other: MultiViewSelector) -> None:
    assert state_bytes(one.state) == state_bytes(other.state)
    assert repr(one) == repr(other)  # includes the number of buffered rows


@pytest.mark.parametrize("preset", PRESETS)
@settings(max_examples=8)
@given(layout=layouts(), seed=st.integers(0, 5))
def test_the_same_input_gives_the_same_bytes(preset: Any, layout: Layout, seed: int) -> None:
    one, other, third = (
        selector(layout, preset=preset, seed=number, first_rows=1, decay=0.9)
        for number in (seed, seed, seed + 1)
    )
    for inputs, present in random_stream(layout):
        for model in (one, other, third):
            model.partial_fit(inputs, present=present)
    same(one, other)
    assert state_bytes(one.state) != state_bytes(third.state)


@pytest.mark.parametrize("preset", PRESETS)
@settings(max_examples=8)
@given(layout=layouts(chunks=5), first_rows=st.integers(1, 20))
def test_a_saved_selector_continues_with_the_same_bytes(
    preset: Any, layout: Layout, first_rows: int
) -> None:
    """Saved and loaded before every chunk, also while rows are still kept back."""
    straight = selector(layout, preset=preset, first_rows=first_rows)
    stopped = selector(layout, preset=preset, first_rows=first_rows)
    with TemporaryDirectory() as folder:
        for inputs, present in random_stream(layout):
            straight.partial_fit(inputs, present=present)
            path = Path(folder) / "selector"
            stopped.save(path)
            stopped = MultiViewSelector.load(path).partial_fit(inputs, present=present)
            same(straight, stopped)
            assert [file.name for file in Path(folder).iterdir()] == ["selector"]
        straight.flush()
        stopped.save(path)
        stopped = MultiViewSelector.load(path).flush()
    same(straight, stopped)
    assert straight.state.chunk > 0


@settings(max_examples=20)
@given(layout=layouts(chunks=4))
def test_buffered_rows_are_saved_unchanged(layout: Layout) -> None:
    model = selector(layout, first_rows=1000)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "selector"
        chunks = list(random_stream(layout))
        for inputs, present in chunks:
            model.partial_fit(inputs, present=present)
        model.save(path)
        state, waiting = read_file(path)
    assert state_bytes(state) == state_bytes(model.state)
    assert [chunk.size for chunk in waiting] == list(layout.sizes)
    for chunk, (inputs, present) in zip(waiting, chunks, strict=True):
        for name, part in chunk.views.items():
            rows: Any = inputs[name][np.flatnonzero(present[name])]
            np.testing.assert_array_equal(part.present, present[name])
            assert type(part.rows) is type(rows)
            assert part.rows.dtype == layout.dtype
            np.testing.assert_array_equal(dense(part.rows), dense(rows))


@pytest.mark.parametrize("preset", PRESETS)
@settings(max_examples=5)
@given(layout=layouts())
def test_a_flattened_state_is_restored(preset: Any, layout: Layout) -> None:
    model = selector(layout, preset=preset, first_rows=1)
    for inputs, present in random_stream(layout):
        model.partial_fit(inputs, present=present)
    again = unflatten(*flatten(model.state))
    assert again.params == model.params
    assert state_bytes(again) == state_bytes(model.state)


def test_buffered_rows_form_one_first_chunk() -> None:
    """Fed in pieces, the first chunk is the same as fed at once."""
    rng = np.random.default_rng(1)
    data = {"a": rng.random((90, 4)), "b": rng.random((90, 3))}
    data["b"][:7] = np.nan
    whole = MultiViewSelector([View("a", 4), View("b", 3)], 3, first_rows=30).partial_fit(data)
    pieces = MultiViewSelector([View("a", 4), View("b", 3)], 3, first_rows=30)
    for begin, end in ((0, 10), (10, 60), (60, 90)):
        assert pieces.state.chunk == 0
        pieces.partial_fit({name: rows[begin:end] for name, rows in data.items()})
    same(whole, pieces)
    assert whole.state.chunk == 1
