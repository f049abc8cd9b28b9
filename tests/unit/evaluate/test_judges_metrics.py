import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_fs.evaluate.judges import Agreement, agreement, contingency, f_measure

labellings = st.integers(2, 30).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 4), min_size=n, max_size=n),
        st.lists(st.integers(0, 4), min_size=n, max_size=n),
    )
)


def test_values_computed_by_hand() -> None:
    classes = np.array([0, 0, 0, 1, 1, 1])
    clusters = np.array([0, 0, 1, 1, 1, 2])
    # n_ij: cluster 0 has (2, 0), cluster 1 has (1, 2), cluster 2 has (0, 1)
    information = 2 / 6 * math.log(2) + 1 / 6 * math.log(2 / 3)
    information += 2 / 6 * math.log(4 / 3) + 1 / 6 * math.log(2)
    entropy = -(2 / 6 * math.log(2 / 6) + 3 / 6 * math.log(3 / 6) + 1 / 6 * math.log(1 / 6))
    # pairs together in both 2, in the clusters 4, in the classes 6, of 15 in all
    expected = 4 * 6 / 15
    found = agreement(classes, clusters)
    assert found.nmi == pytest.approx(information / math.sqrt(entropy * math.log(2)))
    assert found.ari == pytest.approx((2 - expected) / ((4 + 6) / 2 - expected))
    # P = 1, R = 2/3 → 4/5;  P = 2/3, R = 2/3 → 2/3;  P = 1, R = 1/3 → 1/2
    assert found.f == pytest.approx((4 / 5 + 2 / 3 + 1 / 2) / 3)


def test_the_same_partition_is_perfect_whatever_its_numbers() -> None:
    classes = np.array([3, 3, 1, 1, 0, 0, 0])
    clusters = np.array([7, 7, 5, 5, 9, 9, 9])
    found = agreement(classes, clusters)
    assert (found.nmi, found.ari, found.f) == pytest.approx((1, 1, 1))


def test_one_cluster_has_no_information() -> None:
    found = agreement(np.array([0, 0, 1, 1]), np.zeros(4, dtype=np.int64))
    assert (found.nmi, found.ari) == pytest.approx((0, 0))
    assert found.f == pytest.approx(2 * (1 / 2) * 1 / (1 / 2 + 1))


def test_clusters_count_the_same_whatever_their_size() -> None:
    classes = np.array([0] * 8 + [1] * 2)
    split = np.array([0] * 8 + [1, 2])
    assert f_measure(classes, split) == pytest.approx((1 + 2 / 3 + 2 / 3) / 3)


def test_a_tie_for_the_majority_takes_the_better_class() -> None:
    classes = np.array([0, 0, 0, 1])
    clusters = np.array([0, 0, 1, 1])
    # cluster 1 holds one of each class: class 1 has F = 2/3, class 0 has F = 2/5
    assert f_measure(classes, clusters) == pytest.approx((4 / 5 + 2 / 3) / 2)


def test_contingency_counts_every_instance_once() -> None:
    counts = contingency(np.array([5, 5, 9]), np.array([1, 0, 1]))
    assert counts.tolist() == [[1, 0], [1, 1]]


@given(labellings, st.permutations(range(5)), st.permutations(range(5)))
def test_numbering_does_not_matter(
    pair: tuple[list[int], list[int]], of_classes: list[int], of_clusters: list[int]
) -> None:
    classes, clusters = np.array(pair[0]), np.array(pair[1])
    renamed = agreement(np.array(of_classes)[classes], np.array(of_clusters)[clusters])
    assert vars(renamed) == pytest.approx(vars(agreement(classes, clusters)))


@given(labellings)
def test_measures_stay_in_their_range(pair: tuple[list[int], list[int]]) -> None:
    found: Agreement = agreement(np.array(pair[0]), np.array(pair[1]))
    assert 0 <= found.nmi <= 1 + 1e-12
    assert -1 <= found.ari <= 1 + 1e-12
    assert 0 < found.f <= 1 + 1e-12
