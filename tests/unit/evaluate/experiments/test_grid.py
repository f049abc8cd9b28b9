from stream_fs.evaluate.experiments import grid
from tests.support.experiments import measured, planned


def test_the_grid_leaves_the_middle_one_parameter_at_a_time() -> None:
    settings = grid.parameter_settings(grid.MIDDLE, grid.GRID)
    assert settings[0][0] == "middle"
    assert len(settings) == 1 + 4 + 4 + 4 + 9
    assert all(value != grid.MIDDLE[name] for name, value in settings[1:])


def test_the_grid_is_judged_as_in_the_paper() -> None:
    rows = measured("grid", planned("grid", parameter="lam", value=2.0))
    assert [(row["budget"], row["judge"]) for row in rows] == [("proportional", "gimc scaled")]
