import numpy as np
import pytest

from stream_fs.evaluate import graphs
from stream_fs.evaluate.graphs import (
    cosine_graph,
    heat_graph,
    nearest_rows,
    unit_range,
    unit_rows,
)


def test_unit_rows_keeps_zero_rows() -> None:
    unit = unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    assert unit.tolist() == [[0.6, 0.8], [0.0, 0.0]]


def test_unit_range_maps_to_zero_and_one_and_constants_to_zero() -> None:
    scaled = unit_range(np.array([[-2.0, 5.0], [0.0, 5.0], [2.0, 5.0]]))
    assert scaled.tolist() == [[0.0, 0.0], [0.5, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize("entries", [1, 95, 10_000])
def test_nearest_rows_equal_brute_force_for_any_block(
    entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs, "BLOCK_ENTRIES", entries)
    x = np.random.default_rng(0).standard_normal((31, 5))
    squared = ((x[:, None] - x) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    indices, distances = nearest_rows(x, 4)
    assert (np.sort(indices, axis=1) == np.sort(np.argsort(squared, axis=1)[:, :4], axis=1)).all()
    np.testing.assert_allclose(distances, np.take_along_axis(squared, indices, axis=1))


def test_more_neighbours_than_rows_means_all_others() -> None:
    indices, _ = nearest_rows(np.arange(3.0)[:, None], 7)
    assert [sorted(row) for row in indices.tolist()] == [[1, 2], [0, 2], [0, 1]]


def test_cosine_graph_averages_both_directions() -> None:
    angles = np.array([0.0, 0.2, 0.5])
    graph = cosine_graph(np.column_stack([np.cos(angles), np.sin(angles)]), 1).toarray()
    # 0 and 1 choose each other, 2 chooses 1
    assert graph.tolist() == [[0, 1, 0], [1, 0, 0.5], [0, 0.5, 0]]


def test_cosine_graph_joins_zero_rows_with_each_other() -> None:
    unit = np.array([[1.0, 0], [0.8, 0.6], [0, 0], [0, 0]])
    graph = cosine_graph(unit, 1).toarray()
    assert graph.tolist() == [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]


def test_heat_graph_weights() -> None:
    graph = heat_graph(np.array([[0.0], [1.0], [3.0]]), 1).toarray()
    # neighbours 0→1, 1→0, 2→1 at squared distances 1, 1, 4: mean 2
    near, far = np.exp(-1 / 2), np.exp(-4 / 2)
    np.testing.assert_allclose(graph, [[0, near, 0], [near, 0, far], [0, far, 0]])
