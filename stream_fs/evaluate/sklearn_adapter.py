"""The only module that imports scikit-learn, behind typed functions."""

import warnings
from typing import cast

import numpy as np

from stream_fs.evaluate.datasets import Labels, Matrix
from stream_fs.evaluate.errors import ExtraMissing

try:
    from sklearn import cluster, datasets, decomposition, exceptions, metrics
except ImportError as error:
    raise ExtraMissing(
        "evaluation needs scikit-learn: install the extra with pip install 'stream-fs[evaluate]'"
    ) from error


def k_means(points: Matrix, clusters: int, seed: int, restarts: int = 20) -> Labels:
    """Cluster of every row of ``points`` (n × m): the best of several k-means++ starts."""
    model = cluster.KMeans(n_clusters=clusters, n_init=restarts, random_state=seed)
    return np.asarray(model.fit_predict(points), dtype=np.int64)


def nmf_components(rows: Matrix, rank: int, seed: int) -> Matrix:
    """H (rank × d) of ``rows ≈ W H``, W, H ≥ 0, by mini-batch updates; rows ≥ 0 (n × d)."""
    model = decomposition.MiniBatchNMF(n_components=rank, random_state=seed)
    with warnings.catch_warnings():
        # The order of the features by norm is stable long before every entry has converged.
        warnings.simplefilter("ignore", exceptions.ConvergenceWarning)
        return cast(Matrix, model.fit(rows).components_)


def mutual_information(classes: Labels, clusters: Labels) -> float:
    """NMI with the geometric mean of the entropies."""
    return float(
        metrics.normalized_mutual_info_score(classes, clusters, average_method="geometric")
    )


def adjusted_rand(classes: Labels, clusters: Labels) -> float:
    """Rand index adjusted for chance."""
    return float(metrics.adjusted_rand_score(classes, clusters))


def load_digits() -> tuple[Matrix, Labels]:
    """The handwritten digits that scikit-learn ships: images (1,797 × 8 × 8, 0 … 16), classes."""
    bunch = datasets.load_digits()
    return np.asarray(bunch.images, dtype=np.float64), np.asarray(bunch.target, dtype=np.int64)


def breast_cancer_arrays() -> tuple[Matrix, Labels]:
    """Features (569 × 30) and classes of the Wisconsin set that scikit-learn ships."""
    features, labels = datasets.load_breast_cancer(return_X_y=True)
    return np.asarray(features, dtype=np.float64), np.asarray(labels, dtype=np.int64)
