from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stream_fs.evaluate.datasets import IncompleteViews, list_sets, load_masks, load_set
from stream_fs.evaluate.errors import DataMalformed, DataNotFound


def save(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    np.savez(path, allow_pickle=False, **arrays)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    views = {f"view_{v}": np.full((3, v + 1), v, dtype=np.float32) for v in range(11)}
    save(tmp_path / "beta.npz", {"labels": np.array([7, 3, 7]), **views})
    save(tmp_path / "beta_wen_folds.npz", {"del_0.5": np.eye(3, dtype=np.uint8)[None]})
    save(tmp_path / "alpha.npz", {"view_0": np.ones((3, 1))})
    return tmp_path


def test_a_set_has_its_views_in_numeric_order_and_coded_labels(directory: Path) -> None:
    data = load_set(directory, "beta")
    assert [x.shape[1] for x in data.views] == list(range(1, 12))
    assert data.labels.tolist() == [1, 0, 1]
    assert (data.name, data.instances, data.classes) == ("beta", 3, 2)


def test_masks_are_not_listed_as_sets(directory: Path) -> None:
    assert list_sets(directory) == ["alpha", "beta"]


def test_published_masks(directory: Path) -> None:
    masks = load_masks(directory, "beta", 0.5)
    assert masks.dtype == np.bool_
    assert masks[0].tolist() == np.eye(3).astype(bool).tolist()


def test_missing_files_and_keys_are_named(directory: Path) -> None:
    with pytest.raises(DataNotFound, match=r"no gamma\.npz .* alpha, beta"):
        load_set(directory, "gamma")
    with pytest.raises(DataNotFound, match="no published masks"):
        load_masks(directory, "alpha", 0.5)
    with pytest.raises(DataNotFound, match=r"share 0\.3.*del_0\.5"):
        load_masks(directory, "beta", 0.3)
    with pytest.raises(DataNotFound, match="no data directory"):
        list_sets(directory / "nowhere")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"view_0": np.ones((2, 1))}, "labels"),
        ({"labels": np.arange(2)}, "view_0"),
        ({"view_0": np.ones((3, 1)), "labels": np.arange(2)}, r"view_0 has shape \(3, 1\)"),
        ({"view_0": np.array([[np.nan], [1]]), "labels": np.arange(2)}, "not finite"),
    ],
)
def test_a_malformed_set_is_refused(
    tmp_path: Path, arrays: dict[str, NDArray[Any]], message: str
) -> None:
    save(tmp_path / "bad.npz", arrays)
    with pytest.raises(DataMalformed, match=message):
        load_set(tmp_path, "bad")


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "float16", ">f8"])
def test_views_of_other_numbers_are_read_as_floats(tmp_path: Path, dtype: str) -> None:
    view = np.array([[0, 1], [1, 1], [1, 0]], dtype)
    save(tmp_path / "counts.npz", {"view_0": view, "labels": np.array([[0], [1], [1]])})
    data = load_set(tmp_path, "counts")
    assert data.views[0].dtype == np.float64
    assert data.views[0].tolist() == view.tolist()
    assert data.labels.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"view_0": np.ones((3, 2))}, "it has view_0"),
        (
            {"view_0": np.array([["a"], ["b"]]), "labels": np.arange(2)},
            "bad.npz: view_0 holds <U1, not real numbers",
        ),
        (
            {"view_0": np.ones((2, 2), complex), "labels": np.arange(2)},
            "bad.npz: view_0 holds complex128",
        ),
        ({"view_0": np.ones((3, 2)), "labels": np.eye(3)}, r"bad.npz: labels has shape \(3, 3\)"),
        ({"view_0": np.ones((1, 2)), "labels": np.ones(1)}, "at least 2 instances"),
        ({"view_0": np.ones((0, 2)), "labels": np.ones(0)}, "at least 2 instances"),
        (
            {"view_0": np.ones((3, 2)), "labels": np.array(["a", "b", "b"], object)},
            r"bad.npz: labels cannot be read.*\.astype\(str\)",
        ),
    ],
)
def test_a_refused_set_is_told_what_it_has_and_needs(
    tmp_path: Path, arrays: Mapping[str, NDArray[Any]], message: str
) -> None:
    np.savez(tmp_path / "bad.npz", allow_pickle=True, **arrays)
    with pytest.raises(DataMalformed, match=message):
        load_set(tmp_path, "bad")


def test_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04")
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "text.npz").write_bytes(b"1,2,3\n")
    with (tmp_path / "single.npz").open("wb") as file:
        np.save(file, np.ones((3, 2)))
    for name in ("broken", "empty", "text", "single"):
        with pytest.raises(DataMalformed, match=f"{name}.npz is not an archive"):
            load_set(tmp_path, name)


def test_selecting_features_keeps_rows_and_presence() -> None:
    present = np.array([[True, False], [True, True]])
    data = IncompleteViews((np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0], [6.0]])), present)
    selected = data.select([np.array([False, True]), np.array([True])])
    assert [x.tolist() for x in selected.views] == [[[2], [4]], [[5], [6]]]
    assert selected.present_rows(1).tolist() == [[6]]
    assert selected.rows(1).tolist() == [1]


def test_a_mask_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="mask of shape"):
        IncompleteViews((np.ones((2, 1)),), np.ones((2, 2), dtype=np.bool_))
