"""The data of the demo: scikit-learn's handwritten digits in four views.

A block of useless features is appended to every view: noise of large variance, constants, and
heavy-tailed noise. A good ranking does not select them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stream_fs.evaluate.datasets import Labels, Mask
from stream_fs.evaluate.protocol import remove_views
from stream_fs.evaluate.sklearn_adapter import load_digits

Floats: TypeAlias = NDArray[np.floating[Any]]

SIDE: Final = 8
"""Pixels on each side of an image."""
ORIENTATIONS: Final = 8


@dataclass(frozen=True)
class DigitsView:
    """A view of the images: values (n × d), a name for each feature."""

    name: str
    values: Floats
    names: tuple[str, ...]
    useless: Mask
    """Mask (d) of the useless features."""
    shape: tuple[int, int] | None = None


def digits(generator: np.random.Generator) -> tuple[list[DigitsView], Labels]:
    """The views of every image, and its digit, which the selector does not see."""
    images, labels = load_digits()
    pixels = [f"row {y} column {x}" for y in range(SIDE) for x in range(SIDE)]
    views = [
        _view("pixels", images.reshape(len(images), -1), pixels, 2 * SIDE, generator),
        _view("fourier", *_fourier(images), SIDE, generator),
        _view("gradients", *_gradients(images), SIDE, generator),
        _view("moments", *_moments(images), SIDE, generator),
    ]
    return views, labels


def _view(
    name: str, values: Floats, names: list[str], useless: int, generator: np.random.Generator
) -> DigitsView:
    """The view with a block of useless features; pixels have the shape of an image."""
    rows = len(values)
    kinds: list[tuple[str, Callable[[], Floats]]] = [
        ("noise", lambda: generator.normal(0, 10 * values.std(), rows)),
        ("constant", lambda: np.full(rows, values.max())),
        ("heavy tail", lambda: generator.standard_t(2, rows) * values.std()),
    ]
    block = [
        (f"useless {kind} {i}", make()) for i in range(useless) for kind, make in [kinds[i % 3]]
    ]
    columns = np.column_stack([values, *(column for _, column in block)])
    mask = np.arange(columns.shape[1]) >= values.shape[1]
    shape = (columns.shape[1] // SIDE, SIDE) if name == "pixels" else None
    labels = (*names, *(label for label, _ in block))
    return DigitsView(name, columns.astype(np.float32), labels, mask, shape)


def _fourier(images: Floats) -> tuple[Floats, list[str]]:
    """Magnitudes of the two-dimensional Fourier transform without its mirrored half."""
    magnitudes = np.abs(np.fft.rfft2(images))
    _, height, width = magnitudes.shape
    names = [f"frequency {y}:{x}" for y in range(height) for x in range(width)]
    return magnitudes.reshape(len(images), -1), names


def _gradients(images: Floats) -> tuple[Floats, list[str]]:
    """Gradient by orientation, summed over each quarter of the image."""
    dy, dx = np.gradient(images, axis=(1, 2))
    length, angle = np.hypot(dx, dy), np.arctan2(dy, dx)
    bins = np.floor((angle + np.pi) / (2 * np.pi) * ORIENTATIONS).astype(int) % ORIENTATIONS
    half = SIDE // 2
    columns, names = [], []
    for vertical in ("top", "bottom"):
        for horizontal in ("left", "right"):
            rows = slice(0, half) if vertical == "top" else slice(half, SIDE)
            cols = slice(0, half) if horizontal == "left" else slice(half, SIDE)
            for orientation in range(ORIENTATIONS):
                inside = np.where(bins == orientation, length, 0)[:, rows, cols]
                columns.append(inside.sum(axis=(1, 2)))
                names.append(f"{vertical} {horizontal} {orientation * 360 // ORIENTATIONS}°")
    return np.column_stack(columns), names


def _moments(images: Floats) -> tuple[Floats, list[str]]:
    """Ink in every row and column, and central moments up to the third order."""
    ink = images.sum(axis=(1, 2))
    y, x = np.mgrid[:SIDE, :SIDE]
    along_y = (images * y).sum(axis=(1, 2)) / ink
    along_x = (images * x).sum(axis=(1, 2)) / ink
    columns = [ink, along_y, along_x]
    names = ["ink", "vertical centre", "horizontal centre"]
    for p, q in ((2, 0), (0, 2), (1, 1), (3, 0), (0, 3), (2, 1), (1, 2)):
        power = (y - along_y[:, None, None]) ** p * (x - along_x[:, None, None]) ** q
        columns.append((images * power).sum(axis=(1, 2)) / ink)
        names.append(f"moment {p}:{q}")
    profiles = np.concatenate([images.sum(axis=2), images.sum(axis=1)], axis=1)
    names += [f"ink in row {i}" for i in range(SIDE)] + [f"ink in column {i}" for i in range(SIDE)]
    return np.column_stack([*columns, profiles]), names


CHUNK: Final = 300
CLUSTERS: Final = 10
PASSES: Final = 5
"""How often the data file has every image, each time in another order, with other views missing."""
MISSING: Final = 0.5
NAME: Final = "digits"
SHARE: Final = 0.3
"""Share of all features that is published, and selected."""


@dataclass(frozen=True)
class DemoStream:
    """The data of the demo, and its files."""

    views: Sequence[DigitsView]
    labels: Labels
    records: int
    """Number of records in the data file."""
    data: Path
    config: Path
    address: str
    """URL of the service."""

    @property
    def features(self) -> int:
        """Number of features of all views."""
        return sum(len(view.names) for view in self.views)

    @property
    def useless(self) -> int:
        """Number of useless features."""
        return sum(int(view.useless.sum()) for view in self.views)

    def chunks(self, times: int) -> int:
        """Complete chunks, and so rankings, when the data file is streamed `times` times."""
        return times * self.records // CHUNK


def prepare(directory: Path, name: str, bootstrap: str, port: int) -> DemoStream:
    """Write the data and the configuration into the directory."""
    generator = np.random.default_rng(0)
    views, labels = digits(generator)
    order = np.concatenate([generator.permutation(len(labels)) for _ in range(PASSES)])
    data, config = directory / "digits.npz", directory / "stream-fs.toml"
    present = remove_views(len(order), len(views), MISSING, generator)
    # A row of NaN is a missing view.
    rows = {
        view.name: np.where(present[:, [number]], view.values[order], np.float32(np.nan))
        for number, view in enumerate(views)
    }
    np.savez(data, allow_pickle=False, **rows)
    config.write_text(_configuration(views, name, bootstrap, port), encoding="utf-8")
    return DemoStream(views, labels, len(order), data, config, f"http://127.0.0.1:{port}")


def _configuration(views: Iterable[DigitsView], name: str, bootstrap: str, port: int) -> str:
    # A string, a number and a list are written in JSON as in TOML.
    lines = [
        "[stream]",
        f"name = {json.dumps(name)}",
        f"topics = [{json.dumps(name)}]",
        "",
        "[selector]",
        f"clusters = {CLUSTERS}",
        "",
        "[chunk]",
        f"records = {CHUNK}",
        "",
        "[output]",
        f"top = {SHARE}",
        "",
        "[kafka]",
        f"bootstrap = {json.dumps(bootstrap)}",
        "",
        "[service]",
        f"port = {port}",
    ]
    for view in views:
        lines += [
            "",
            "[[views]]",
            f"name = {json.dumps(view.name)}",
            f"dimension = {view.values.shape[1]}",
            f"names = {json.dumps(view.names, ensure_ascii=False)}",
        ]
        if view.shape is not None:
            lines.append(f"shape = {json.dumps(view.shape)}")
    return "\n".join(lines) + "\n"
