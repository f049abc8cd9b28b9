import math

import pytest
from scipy import stats

from stream_fs.evaluate.report.results import estimate, paired_p


def test_standard_error_of_a_mean() -> None:
    found = estimate([1.0, 2.0, 3.0])
    assert found.mean == 2
    assert found.error == pytest.approx(1 / math.sqrt(3))
    assert found.count == 3


def test_a_single_value_has_no_error() -> None:
    assert math.isnan(estimate([1.0]).error)
    assert math.isnan(estimate([]).mean)
    assert not estimate([1.0]).clear


def test_clear_is_above_the_standard_error() -> None:
    assert estimate([1.0, 2.0, 3.0]).clear
    assert not estimate([-1.0, 1.0, 0.3]).clear


def test_paired_p_is_that_of_the_t_test() -> None:
    one, other = [0.4, 0.6, 0.5, 0.9], [0.3, 0.5, 0.6, 0.4]
    differences = [a - b for a, b in zip(one, other, strict=True)]
    assert paired_p(differences) == pytest.approx(stats.ttest_rel(one, other).pvalue)


@pytest.mark.parametrize(("differences", "p"), [([0.1], 1), ([0.0, 0.0], 1), ([0.1, 0.1], 0)])
def test_paired_p_at_its_edges(differences: list[float], p: float) -> None:
    assert paired_p(differences) == p
