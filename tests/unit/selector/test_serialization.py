"""Files of a selector: written whole, read without pickle, refused when they are something else."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stream_fs.errors import IncompatibleState
from stream_fs.selector import MultiViewSelector, View
from stream_fs.selector.state import flatten, unflatten

Content = dict[str, Any]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    model = MultiViewSelector([View("a", 3, names=("x", "y", "ж")), View("b/ä", 2)], 2)
    model.partial_fit({"a": rng.random((50, 3)), "b/ä": rng.random((50, 2))})
    path = tmp_path / "model.selector"
    model.save(path)
    return path


def content(path: Path) -> Content:
    with np.load(path) as archive:
        return dict(archive)


def write(path: Path, arrays: Content) -> None:
    with path.open("wb") as file:
        np.savez(file, **arrays)


def header(arrays: Content) -> dict[str, Any]:
    described: dict[str, Any] = json.loads(arrays["header"].tobytes())
    return described


def with_header(arrays: Content, change: Callable[[dict[str, Any]], None]) -> None:
    described = header(arrays)
    change(described)
    arrays["header"] = np.frombuffer(json.dumps(described).encode(), np.uint8)


def test_a_file_comes_back(saved: Path) -> None:
    model = MultiViewSelector.load(str(saved))
    assert [view.name for view in model.params.views] == ["a", "b/ä"]
    assert model.ranking()["a"].names == ("x", "y", "ж")
    assert model.state.total == 50


def test_saving_replaces_the_file_or_leaves_it(saved: Path) -> None:
    model = MultiViewSelector.load(saved)
    before = saved.read_bytes()
    model.save(saved)
    assert content(saved).keys() == header_free(before)
    with pytest.raises(FileNotFoundError):
        model.save(saved.parent / "no such folder" / "model")
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def header_free(data: bytes) -> set[str]:
    with np.load(io.BytesIO(data)) as archive:
        return set(archive.files)


FOREIGN: dict[str, bytes] = {
    "empty": b"",
    "text": b"no selector",
    "a broken archive": b"PK\x03\x04 and then nothing",
    "zeros": bytes(1000),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(FOREIGN[kind])
    with pytest.raises(IncompatibleState, match="is not a stream-fs selector"):
        MultiViewSelector.load(path)


def test_another_numpy_file_is_refused(tmp_path: Path) -> None:
    archive, single, pickled = (
        tmp_path / name for name in ("archive.npz", "one.npy", "pickle.npy")
    )
    write(archive, {"x": np.ones(3)})
    np.save(single, np.ones(3))
    np.save(pickled, np.array([{}], dtype=object))
    for path in (archive, single, pickled):
        with pytest.raises(IncompatibleState, match="is not a stream-fs selector"):
            MultiViewSelector.load(path)


def test_a_missing_file_is_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        MultiViewSelector.load(tmp_path / "nothing")


@pytest.mark.parametrize("length", [0.1, 0.5, 0.9, 0.999])
def test_a_file_cut_short_is_refused(saved: Path, length: float) -> None:
    data = saved.read_bytes()
    saved.write_bytes(data[: int(length * len(data))])
    with pytest.raises(IncompatibleState):
        MultiViewSelector.load(saved)


def test_damaged_bytes_are_noticed(saved: Path) -> None:
    """A change of any byte of an array is detected by the checksums of the archive."""
    data = bytearray(saved.read_bytes())
    place = data.find(content(saved)["state.0.Q"].tobytes())
    assert place > 0
    data[place] ^= 0xFF
    saved.write_bytes(data)
    with pytest.raises(IncompatibleState):
        MultiViewSelector.load(saved)


def remove(name: str) -> Callable[[Content], None]:
    return lambda arrays: arrays.__delitem__(name)


def change(name: str, value: Any) -> Callable[[Content], None]:
    return lambda arrays: with_header(arrays, lambda described: described.update({name: value}))


def change_params(name: str, value: Any) -> Callable[[Content], None]:
    def changed(described: dict[str, Any]) -> None:
        described["state"]["params"][name] = value

    return lambda arrays: with_header(arrays, changed)


def grow(arrays: Content) -> None:
    arrays["state.0.Q"] = np.ones((4, 2))


def spoil(arrays: Content) -> None:
    arrays["header"] = np.frombuffer(b"{not json", np.uint8)


def binary(arrays: Content) -> None:
    arrays["header"] = np.full(40, 0xFF, np.uint8)


def words(arrays: Content) -> None:
    arrays["state.0.Q"] = np.full((3, 2), "word")


BROKEN: dict[str, tuple[Callable[[Content], None], str]] = {
    "no header": (remove("header"), "header"),
    "a header that is not JSON": (spoil, "is not a stream-fs selector"),
    "a header that is not text": (binary, "is not a stream-fs selector"),
    "a missing array": (remove("state.1.moments.Z"), "1.moments.Z"),
    "an array of another shape": (grow, "0.Q has shape"),
    "an array of words": (words, "stream-fs selector|not a state"),
    "another format": (change("format", "other"), "is not a stream-fs selector"),
    "a later version": (change("version", 2), "version 2, this release reads 1"),
    "a state that is none": (change("state", None), "not a state|is not a stream-fs"),
    "no description": (change("state", {}), "params"),
    "waiting rows that are not there": (change("waiting", None), "is not a stream-fs selector"),
    "a parameter out of range": (change_params("lam", 0.5), "lam"),
    "an unknown parameter": (change_params("gamma", 0.5), "gamma"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_refused(saved: Path, case: str) -> None:
    damage, message = BROKEN[case]
    arrays = content(saved)
    damage(arrays)
    write(saved, arrays)
    with pytest.raises(IncompatibleState, match=message):
        MultiViewSelector.load(saved)


def test_waiting_rows_are_checked_too(tmp_path: Path) -> None:
    path = tmp_path / "waiting"
    MultiViewSelector([View("a", 3)], 2).partial_fit({"a": np.ones((5, 3))}).save(path)
    arrays = content(path)
    for name, value in (
        ("waiting.0.0.rows", np.ones((5, 4))),
        ("waiting.0.0.rows", np.ones((4, 3))),
        ("waiting.0.0.present", np.ones(4, bool)),
        ("waiting.0.0.present", np.ones(5)),
    ):
        write(path, {**arrays, name: value})
        with pytest.raises(IncompatibleState):
            MultiViewSelector.load(path)


def test_a_state_of_other_parameters_does_not_fit(saved: Path) -> None:
    description, arrays = flatten(MultiViewSelector.load(saved).state)
    wrong = {**description, "params": {**description["params"], "clusters": 3}}
    with pytest.raises(IncompatibleState, match="shape"):
        unflatten(wrong, arrays)
    for key in description:
        with pytest.raises(IncompatibleState, match=key):
            unflatten({k: v for k, v in description.items() if k != key}, arrays)
