import numpy as np
import pytest

from stream_fs.evaluate.report.results import (
    DEFAULT,
    Contender,
    PairedResults,
    overall,
    paired_difference,
)
from tests.support.report_rows import (
    ranking_rows,
)


def test_values_are_means_over_judges_and_shares() -> None:
    paired = PairedResults(ranking_rows())
    np.testing.assert_allclose(paired.values("USPS", DEFAULT), [0.5, 0.52])
    np.testing.assert_allclose(paired.values("USPS", Contender("variance", "sqrt")), [0.2, 0.18])
    np.testing.assert_allclose(
        paired.values("USPS", DEFAULT, "f", ["gimc scaled"], [0.1]), [0.2, 0.2]
    )


def test_a_repetition_counts_only_when_every_method_has_it() -> None:
    paired = PairedResults(ranking_rows(skipped=["OMVFS"]))
    assert paired.repetitions == {"3Sources": [0], "USPS": [0]}
    np.testing.assert_allclose(paired.values("USPS", DEFAULT), [0.5])


def test_a_difference_below_a_standard_error_is_not_claimed() -> None:
    values = {"a": [0.3, 0.3], "b": [-0.1, -0.1], "c": [-0.1, -0.1]}
    found = paired_difference(
        list(values), lambda name: np.array(values[name]), lambda _: np.zeros(2)
    )
    assert found.mean == pytest.approx(1 / 30)
    assert not found.clear


def test_a_set_with_one_repetition_is_assumed_to_vary_like_the_others() -> None:
    values = {"a": [0.0, 0.2], "b": [0.1]}
    found = paired_difference(
        list(values), lambda n: np.array(values[n]), lambda n: 0 * np.array(values[n])
    )
    assert found.repetition_error == pytest.approx(np.sqrt(2 * 0.1**2) / 2)


def test_means_have_the_standard_error_over_repetitions() -> None:
    found = overall({"a": np.array([0.4, 0.6]), "b": np.array([0.1, 0.1])})
    assert found.mean == pytest.approx(0.3)
    assert found.error == pytest.approx(0.1 / 2)
