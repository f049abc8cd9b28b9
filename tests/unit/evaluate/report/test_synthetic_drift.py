"""The table of drift, and the decay that it recommends."""

from collections.abc import Mapping

import pytest

from stream_fs.evaluate.plan import Row
from stream_fs.evaluate.report.synthetic import (
    MAX_WAIT,
    decay_sentence,
    drift_table,
    recommended_decay,
    runs_by_decay,
)

CHUNKS = 60


def streams(
    waits: Mapping[float, tuple[int, ...]], calm: Mapping[float, tuple[float, ...]]
) -> list[Row]:
    """Streams whose new features lead so many chunks after the change."""
    rows: list[Row] = []
    for decay, by_repetition in waits.items():
        for repetition, wait in enumerate(by_repetition):
            for chunk in range(1, CHUNKS + 1):
                leads = chunk >= CHUNKS // 2 + wait
                moved = {"old": 0.1, "new": 0.9} if leads else {"old": 0.9, "new": 0.1}
                still = {"old": calm[decay][repetition], "new": 0.0}
                for drift, shares in (("yes", moved), ("no", still)):
                    rows.append(
                        {
                            "dataset": "",
                            "repetition": repetition,
                            "decay": decay,
                            "drift": drift,
                            "chunk": chunk,
                            **shares,
                        }
                    )
    return rows


WAITS = {1.0: (99, 99), 0.95: (12, 20), 0.9: (MAX_WAIT, 9), 0.8: (4, 5)}
CALM = {1.0: (1.0, 0.9), 0.95: (1.0, 0.9), 0.9: (0.9, 0.6), 0.8: (0.8, 0.5)}


def test_drift_by_decay() -> None:
    table = drift_table(streams(WAITS, CALM), ())
    rows = {row[0]: list(row[1:]) for row in table.rows}
    assert rows["1"][:3] == ["never", "0 of 2", "0 of 2"]
    assert rows["0.95"][:3] == ["16", "2 of 2", "1 of 2"]
    assert rows["0.9"][:3] == ["12", "2 of 2", "2 of 2"]
    assert rows["0.9"][3:] == ["0.900 ± 0.000", "0.750 ± 0.150", "recommended"]
    assert [row[-1] for row in table.rows].count("recommended") == 1
    assert table.strong == "0.9"


def test_the_decay_that_forgets_least_is_recommended() -> None:
    assert recommended_decay(runs_by_decay(streams(WAITS, CALM))) == pytest.approx(0.9)


def test_what_the_recommended_decay_costs_is_computed() -> None:
    ablation: list[Row] = [
        {"dataset": dataset, "repetition": 0, "variant": variant, "nmi": nmi}
        for variant, by_set in (("as it is", (0.5, 0.5)), ("decay 0.9", (0.48, 0.46)))
        for dataset, nmi in zip("ab", by_set, strict=True)
    ]
    rows = streams(WAITS, CALM)
    text = decay_sentence(rows, ablation)
    assert "decay 0.9, the largest with which" in text
    # 0.1 and 0.3 less than without decay
    assert "by -0.200 ± 0.100, compared with decay 1" in text
    assert "NMI on the data sets of the ablation by -0.030 ± 0.010" in text
    assert "the ablation has not measured it" in decay_sentence(rows, ablation[:2])
    assert "the ablation has not measured it" in decay_sentence(rows, ())


def test_no_decay_or_none_at_all_may_be_recommended() -> None:
    slow = streams({1.0: (99, 99), 0.9: (99, 3)}, CALM)
    assert "none is recommended" in decay_sentence(slow, ())
    assert drift_table(slow, ()).strong == ""
    fast = streams({1.0: (3, 3), 0.9: (2, 2)}, CALM)
    assert decay_sentence(fast, ()).endswith("in every stream.")
    assert "decay 1, the largest" in decay_sentence(fast, ())
