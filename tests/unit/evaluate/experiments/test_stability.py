import numpy as np
import pytest

from stream_fs.evaluate.datasets import IncompleteViews
from stream_fs.evaluate.experiments import stability
from stream_fs.evaluate.protocol import Trial
from tests.support.experiments import measured, planned


def test_counts_have_no_other_unit() -> None:
    generator = np.random.default_rng(0)
    counts, lengths = generator.poisson(0.1, (50, 20)).astype(float), generator.random((50, 20))
    both = Trial(IncompleteViews((counts, lengths), np.ones((50, 2), bool)), 2, 0)
    moved = stability.in_other_units(both)
    assert moved is not None
    assert moved.data.views[0] is counts
    assert not np.allclose(moved.data.views[1], lengths)
    only = Trial(IncompleteViews((counts,), np.ones((50, 1), bool)), 2, 0)
    assert stability.in_other_units(only) is None


def test_default_does_not_depend_on_units_and_variance_does() -> None:
    default, variance, random = (
        measured("stability", planned("stability", method=name))[0]
        for name in ("default", "variance", "random")
    )
    assert default["units"] == 1
    assert float(variance["units"]) < 0.7
    # Five of twelve that are equally good are chosen, by chance five of twenty-four.
    assert float(default["halves"]) > float(random["halves"]) + 0.1
    assert 0.5 < float(default["chunks"]) <= 1


def test_overlap_counts_common_features() -> None:
    one = [np.array([True, True, False]), np.array([True, False])]
    other = [np.array([True, False, True]), np.array([False, True])]
    assert stability.overlap(one, other) == pytest.approx(1 / 3)
    assert stability.overlap(one, one) == 1
