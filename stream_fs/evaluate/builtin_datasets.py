"""Data sets that need no files; none of them was used to choose the selector's defaults.

digits         scikit-learn's 8 × 8 digits: pixels, Fourier magnitudes, sums over lines
breast-cancer  scikit-learn's Wisconsin set: mean, error and worst value of ten measurements
topics         generated: word counts of texts in three segments, drawn from overlapping topics
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from stream_fs.evaluate.datasets import DataSet, Labels, Matrix
from stream_fs.evaluate.sklearn_adapter import breast_cancer_arrays, load_digits

SIDE = 8


def digits() -> DataSet:
    """1,797 digits of 10 classes; 64 pixels, 40 Fourier magnitudes, 31 sums over lines."""
    images, labels = load_digits()
    pixels = images.reshape(len(images), -1)
    fourier = np.abs(np.fft.rfft2(images)).reshape(len(images), -1)
    return DataSet("digits", (pixels, fourier, _line_sums(images)), labels)


def _line_sums(images: Matrix) -> Matrix:
    """Sums over rows, columns and diagonals (n × 31)."""
    diagonals = [np.trace(images, offset=k, axis1=1, axis2=2) for k in range(1 - SIDE, SIDE)]
    return np.column_stack([images.sum(axis=2), images.sum(axis=1), *diagonals])


def breast_cancer() -> DataSet:
    """569 tumours of 2 classes; three views of ten features."""
    features, labels = breast_cancer_arrays()
    return DataSet("breast-cancer", tuple(np.split(features, 3, axis=1)), labels)


def topics() -> DataSet:
    """Word counts of 400 texts of 5 classes, in three segments with 800, 600 and 400 words.

    Every class mixes its own topic with two topics that all classes share; most words belong to
    no topic.
    """
    generator = np.random.default_rng(5)
    classes = 5
    labels = generator.permutation(np.repeat(np.arange(classes), 80)).astype(np.int64)
    views = tuple(_segment(labels, classes, words, generator) for words in (800, 600, 400))
    return DataSet("topics", views, labels)


def _segment(labels: Labels, classes: int, words: int, generator: np.random.Generator) -> Matrix:
    common = generator.dirichlet(np.full(words, 0.3))
    own = generator.dirichlet(np.full(words, 0.02), size=classes)
    shared = generator.dirichlet(np.full(words, 0.02), size=2)
    counts = np.empty((len(labels), words))
    for i, label in enumerate(labels):
        weight = generator.dirichlet([6.0, 2.0, 1.0, 1.0])
        word = weight[0] * common + weight[1] * own[label] + weight[2:] @ shared
        counts[i] = generator.multinomial(60, word / word.sum())
    return counts


BUILT_IN: Mapping[str, Callable[[], DataSet]] = {
    "digits": digits,
    "breast-cancer": breast_cancer,
    "topics": topics,
}
