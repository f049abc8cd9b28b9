from stream_fs.evaluate.experiments.speed import INCREMENTS
from stream_fs.evaluate.plan import Row
from stream_fs.evaluate.report.cost import (
    OTHERS,
    convergence_figures,
    relative_objectives,
    speed_tables,
)

SPEED: list[Row] = [
    # The second repetition takes three times as long: the mean is twice the first.
    {
        "dataset": dataset,
        "repetition": repetition,
        "method": method,
        "increment": increment,
        "seconds": seconds * (1 + 2 * repetition),
    }
    for dataset in ("3Sources", "USPS")
    for repetition in range(2)
    for increment in range(1, INCREMENTS + 1)
    for method, seconds in [("default", 0.5), ("paper", 0.25)]
    + [(name, 1.0) for name in OTHERS if name != "paper"]
]


def test_speed_is_a_ratio_to_either_preset() -> None:
    paper = {
        ("speedup", "3S", "0.1", "RNE"): 210.4,
        ("speedup", "3S", "0.1", "OMVFS"): 2.87,
        ("speedup", "3S", "0.3", "OMVFS"): 3.67,
        ("NMI", "3S", "0.1", "ASVW"): 0.5,
    }
    against_default, beside_paper = speed_tables(SPEED, paper)
    assert len(against_default.rows) == len(beside_paper.rows) == 2 * INCREMENTS
    first = dict(zip(against_default.header, against_default.rows[0], strict=True))
    assert first["default, s"] == "1.000"
    assert (first["paper"], first["OMVFS"], first["default, again"]) == ("0.5", "2.0", "2.0")
    assert beside_paper.header[3:] == ["OMVFS here", "OMVFS in the paper", "LapScore here"]
    assert list(beside_paper.rows[0]) == ["3Sources", "10 %", "0.500", "4.0", "2.9", "4.0"]
    assert beside_paper.rows[1][4] == "–"
    assert beside_paper.rows[2][4] == "3.7"
    assert beside_paper.rows[INCREMENTS][0] == "USPS †"
    assert "of the paper's columns: RNE." in beside_paper.note
    assert "Not in the paper's table: LapScore." in beside_paper.note


def test_speed_without_the_papers_figures() -> None:
    beside_paper = speed_tables(SPEED, {})[1]
    assert beside_paper.header[3:] == ["OMVFS here", "LapScore here"]
    assert "Missing here" not in beside_paper.note


def test_convergence_draws_the_first_chunk_and_the_last() -> None:
    rows: list[Row] = [
        {
            "dataset": "a",
            "repetition": 0,
            "preset": preset,
            "chunk": chunk,
            "iteration": iteration,
            "objective": objective,
        }
        for preset in ("default", "paper")
        for chunk in ("first", "last")
        for iteration, objective in ((2, 2.0), (1, 4.0), (3, 1.0))
    ]
    assert len(set(convergence_figures(rows).figures)) == 4
    assert relative_objectives(rows[:3]) == {"a": [1.0, 0.5, 0.25]}
