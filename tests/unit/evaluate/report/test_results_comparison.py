import numpy as np

from stream_fs.evaluate.plan import Row
from stream_fs.evaluate.report.results import complete_trials, nmi_by_dataset


def test_a_trial_with_as_many_but_other_settings_is_not_complete() -> None:
    rows: list[Row] = [
        {"dataset": "a", "repetition": repetition, "method": method}
        for repetition, method in [(0, "x"), (0, "y"), (1, "x"), (1, "z")]
    ]
    assert complete_trials(rows, ["method"]) == rows[:2]
    assert complete_trials([], ["method"]) == []


def test_repetitions_are_paired_by_their_number() -> None:
    rows: list[Row] = [
        {"dataset": "a", "repetition": repetition, "nmi": nmi}
        for repetition, nmi in [(10, 0.3), (2, 0.1), (2, 0.2)]
    ]
    np.testing.assert_allclose(nmi_by_dataset(rows)["a"], [0.15, 0.3])
