"""What a report says of imputed rows: their number and the weight n/j, as the fit uses them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stream_fs.selector import MultiViewSelector, View
from stream_fs.selector.imputation import Imputation

VIEWS = [View("a", 3), View("b", 2)]
NONE = np.zeros(20, bool)


def chunk(seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {"a": rng.random((20, 3)), "b": rng.random((20, 2))}


def fitted(*masks: Any, **parameters: Any) -> list[Imputation]:
    """What is reported of view b, chunk by chunk, where its rows are present as `masks` say."""
    model = MultiViewSelector(VIEWS, 2, first_rows=1, **parameters)
    found = []
    for seed, present in enumerate(masks):
        given = chunk(seed)
        model.partial_fit(given, present={"a": np.ones(20, bool), "b": present})
        assert model.last_report.imputed["a"].rows == 0
        found.append(model.last_report.imputed["b"])
    return found


def some(*missing: int) -> Any:
    """All rows of a chunk but these."""
    present = np.ones(20, bool)
    present[list(missing)] = False
    return present


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_missing_rows_are_counted_with_the_weight_at_the_end_of_the_chunk(preset: str) -> None:
    first, second = fitted(some(3, 4, 19), some(0), preset=preset)
    assert first == Imputation(3, 17 / 20)
    assert second == Imputation(1, 36 / 40)


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_rows_before_the_first_present_one_are_not_imputed(preset: str) -> None:
    unseen, first, second = fitted(NONE, some(0, 1, 7), some(0), preset=preset)
    assert unseen == Imputation(0, 0.0)
    assert first == Imputation(1, 17 / 40)
    assert second == Imputation(1, 36 / 60)


def test_a_view_that_is_absent_from_a_chunk_is_imputed_only_if_it_takes_part() -> None:
    assert fitted(some(0), NONE, absent_view="impute")[1] == Imputation(20, 19 / 40)
    assert fitted(some(0), NONE, absent_view="skip")[1] == Imputation(0, 19 / 40)


def test_the_weight_decays_as_the_counts_do() -> None:
    found = fitted(some(), some(*range(10)), decay=0.5)[1]
    assert found == Imputation(10, (0.5 * 20 + 10) / (0.5 * 20 + 20))


def test_binary_weights_impute_nothing() -> None:
    assert fitted(some(3, 4), some(0), preset="classical") == [Imputation(0, 0.0)] * 2
