from tests.support.experiments import measured, planned


def test_rows_have_the_objective_of_every_iteration() -> None:
    rows = measured("convergence", planned("convergence", preset="default"))
    assert [row["iteration"] for row in rows] == [*range(1, 51)] * 2
    last = [float(row["objective"]) for row in rows if row["chunk"] == "last"]
    assert last[-1] <= last[0]
