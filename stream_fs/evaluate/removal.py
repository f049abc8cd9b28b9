"""Take views away from instances at random, as the paper's protocol does."""

import numpy as np
from numpy.typing import NDArray

from stream_fs.evaluate.data import Mask


def remove_views(instances: int, views: int, share: float, generator: np.random.Generator) -> Mask:
    """Presence mask (instances × views) with ``share`` of every view's instances removed.

    Every instance keeps at least one view. Each view loses exactly ``round(share · n)``
    instances where that is possible, that is while ``views · removed ≤ (views − 1) · n``;
    beyond, all views lose as many as they can, equal to within one.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share must lie in [0, 1], not {share}")
    present = np.ones((instances, views), dtype=np.bool_)
    for view, count in enumerate(_removed_per_view(instances, views, share, generator)):
        present[generator.permutation(instances)[:count], view] = False
    _give_back(present, generator)
    return present


def _removed_per_view(
    instances: int, views: int, share: float, generator: np.random.Generator
) -> NDArray[np.int64]:
    wanted = round(share * instances)
    most = instances * (views - 1)
    counts = np.full(views, min(wanted, most // views), dtype=np.int64)
    if wanted > most // views:
        counts[generator.permutation(views)[: most % views]] += 1
    return counts


def _give_back(present: Mask, generator: np.random.Generator) -> None:
    """Give every instance without a view one that another instance can spare, in place.

    An instance with c views can spare c − 1 of them. The views' counts do not change.
    """
    empty = np.flatnonzero(~present.any(axis=1))
    keys = np.where(present, generator.random(present.shape), np.inf)
    spare = present.copy()
    spare[np.arange(len(present)), keys.argmin(axis=1)] = False
    givers, given = np.nonzero(spare)
    chosen = generator.permutation(len(givers))[: len(empty)]
    present[givers[chosen], given[chosen]] = False
    present[empty, given[chosen]] = True
