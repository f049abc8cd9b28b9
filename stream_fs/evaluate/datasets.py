"""Data sets on disk, and the incomplete views that baselines and judges work on.

A data set ``NAME.npz`` holds ``view_0 … view_k`` (n × d_v) and ``labels`` (n). Published removal
masks are in ``NAME_wen_folds.npz`` as ``del_0.1``, ``del_0.3``, … (repetition × n × views,
1 = present). The labels are for the judges; selectors and baselines do not see them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from zipfile import BadZipFile

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from stream_fs.evaluate.errors import DataMalformed, DataNotFound

Matrix: TypeAlias = NDArray[np.floating[Any]]
Vector: TypeAlias = NDArray[np.floating[Any]]
Labels: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

MASK_SUFFIX = "_wen_folds"
MIN_INSTANCES = 2
"""Clustering needs at least two instances."""
UNREADABLE = (ValueError, EOFError, BadZipFile)
"""What numpy raises for an unreadable file or array."""


@dataclass(frozen=True)
class DataSet:
    """Complete views (each n × d_v) with one class per instance (n, codes 0 … classes − 1)."""

    name: str
    views: tuple[Matrix, ...]
    labels: Labels

    @property
    def instances(self) -> int:
        """Number of rows of every view."""
        return len(self.labels)

    @property
    def classes(self) -> int:
        """Number of distinct classes."""
        return int(self.labels.max()) + 1


@dataclass(frozen=True)
class IncompleteViews:
    """Views (each n × d_v) of which row i of view v counts only where ``present[i, v]``.

    Values of rows that are not present are never read.
    """

    views: tuple[Matrix, ...]
    present: Mask

    def __post_init__(self) -> None:
        expected = (len(self.views[0]), len(self.views))
        if self.present.shape != expected or any(len(x) != expected[0] for x in self.views):
            raise ValueError(f"views need a mask of shape {expected}, not {self.present.shape}")

    def rows(self, view: int) -> NDArray[np.intp]:
        """Indices of the instances that have the view, ascending."""
        return np.flatnonzero(self.present[:, view])

    def present_rows(self, view: int) -> Matrix:
        """The view's present rows (n_v × d_v)."""
        return self.views[view][self.present[:, view]]

    def select(self, masks: Sequence[Mask]) -> "IncompleteViews":
        """The same instances with only the features that the masks (d_v each) keep."""
        kept = tuple(x[:, mask] for x, mask in zip(self.views, masks, strict=True))
        return IncompleteViews(kept, self.present)


def list_sets(directory: Path) -> list[str]:
    """Names of the data sets in a directory, sorted; mask files are left out."""
    if not directory.is_dir():
        raise DataNotFound(f"no data directory {directory}: name one that holds .npz sets")
    stems = (path.stem for path in directory.glob("*.npz"))
    return sorted(stem for stem in stems if not stem.endswith(MASK_SUFFIX))


def load_set(directory: Path, name: str) -> DataSet:
    """Read ``NAME.npz``; any label values are coded 0 … classes − 1."""
    arrays = _read(directory, name, f"sets there: {', '.join(list_sets(directory)) or 'none'}")
    keys = _view_keys(arrays)
    if not keys or "labels" not in arrays:
        has = ", ".join(arrays) or "no arrays"
        raise DataMalformed(f"{name}.npz needs view_0, view_1, … and labels; it has {has}")
    labels = arrays["labels"]
    if labels.size < MIN_INSTANCES or labels.shape not in ((labels.size,), (labels.size, 1)):
        raise DataMalformed(
            f"{name}.npz: labels has shape {labels.shape}, not one label for each of at least "
            f"{MIN_INSTANCES} instances"
        )
    codes = np.unique(labels, return_inverse=True)[1].astype(np.int64).reshape(-1)
    views = tuple(_view(f"{name}.npz: {key}", arrays[key], len(codes)) for key in keys)
    return DataSet(name, views, codes)


def _view(place: str, values: NDArray[Any], instances: int) -> Matrix:
    """A view as floats; integers and booleans are converted."""
    if values.ndim != 2 or len(values) != instances or values.shape[1] == 0:
        raise DataMalformed(
            f"{place} has shape {values.shape}, not instances × d; there are {instances} labels"
        )
    if values.dtype.kind not in "fiub":
        raise DataMalformed(f"{place} holds {values.dtype}, not real numbers")
    floats = values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)
    if not np.isfinite(floats).all():
        raise DataMalformed(
            f"{place} holds values that are not finite: views must be complete; missing "
            "ones are simulated (--missing)"
        )
    return floats


def load_masks(directory: Path, name: str, share: float) -> Mask:
    """Published masks of a data set for a removed share (repetition × n × views)."""
    arrays = _read(directory, name + MASK_SUFFIX, "this set has no published masks")
    key = f"del_{share:g}"
    if key not in arrays:
        raise DataNotFound(f"no masks for share {share:g}; there are {sorted(arrays)}")
    return arrays[key].astype(np.bool_)


def _read(directory: Path, stem: str, hint: str) -> dict[str, NDArray[Any]]:
    path = directory / f"{stem}.npz"
    if not path.is_file():
        raise DataNotFound(f"no {path.name} in {directory}; {hint}")
    no_archive = f"{path.name} is not an archive as numpy.savez writes it"
    with path.open("rb") as file:  # NumPy does not close a file that it cannot read
        try:
            archive = np.load(file, allow_pickle=False)
        except UNREADABLE as error:
            raise DataMalformed(f"{no_archive}: {error}") from error
        if not isinstance(archive, NpzFile):
            raise DataMalformed(f"{no_archive}: it holds a single array")
        return {key: _array(archive, key, path.name) for key in archive.files}


def _array(archive: NpzFile, key: str, file: str) -> NDArray[Any]:
    try:
        found: NDArray[Any] = archive[key]
    except UNREADABLE as error:
        raise DataMalformed(
            f"{file}: {key} cannot be read: {error}; an array of Python objects, as pandas returns "
            "for text, can be stored with .astype(str), one of numbers with .astype(float)"
        ) from error
    return found


def _view_keys(names: Iterable[str]) -> list[str]:
    """``view_0 … view_k`` in numeric order, up to the first gap."""
    available = set(names)
    keys: list[str] = []
    while (key := f"view_{len(keys)}") in available:
        keys.append(key)
    return keys
