"""Found clusters against known classes, by the paper's definitions.

With n_ij the instances of class j in cluster i, n_i and m_j the sizes, n the total:

    NMI = I(clusters; classes) / sqrt(H(clusters) H(classes))
    ARI = (Rand index − its expectation) / (1 − its expectation)
    F   = mean over clusters of 2 P R / (P + R),  P = n_ij / n_i, R = n_ij / m_j,
          j the cluster's majority class

None depends on how clusters or classes are numbered.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stream_fs.evaluate.data import Labels
from stream_fs.evaluate.learn import adjusted_rand, mutual_information


@dataclass(frozen=True)
class Agreement:
    """The three measures of one clustering."""

    nmi: float
    ari: float
    f: float


def agreement(classes: Labels, clusters: Labels) -> Agreement:
    """All measures of ``clusters`` (n) against ``classes`` (n)."""
    return Agreement(
        nmi=mutual_information(classes, clusters),
        ari=adjusted_rand(classes, clusters),
        f=f_measure(classes, clusters),
    )


def f_measure(classes: Labels, clusters: Labels) -> float:
    """Mean F of the clusters with their majority classes, clusters unweighted.

    ``2PR/(P+R) = 2 n_ij / (n_i + m_j)``. Of classes that tie for the majority, the one with the
    larger F counts.
    """
    counts = contingency(classes, clusters)
    sizes = counts.sum(axis=1, keepdims=True) + counts.sum(axis=0, keepdims=True)
    majority = counts == counts.max(axis=1, keepdims=True)
    return float(np.where(majority, 2 * counts / sizes, 0.0).max(axis=1).mean())


def contingency(classes: Labels, clusters: Labels) -> NDArray[np.int64]:
    """``n_ij``: instances of class j in cluster i (clusters × classes), empty ones left out."""
    rows, row = np.unique(clusters, return_inverse=True)
    columns, column = np.unique(classes, return_inverse=True)
    counts = np.zeros((len(rows), len(columns)), dtype=np.int64)
    np.add.at(counts, (row, column), 1)
    return counts
