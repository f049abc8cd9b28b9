from tests.support.experiments import TINY, measured, plan_settings


def test_rows_have_the_time_of_every_method_and_increment() -> None:
    plans = [settings for settings in plan_settings("speed", TINY) if settings["repetition"] == 0]
    rows = [row for settings in plans for row in measured("speed", settings)]
    methods = [settings["method"] for settings in plans]
    assert set(methods) == {
        "default",
        "default, again",
        "paper",
        "paper, again",
        "OMVFS",
        "Laplacian score",
        "MiniBatchNMF",
        "variance",
    }
    assert len(rows) == 5 * len(methods)
    assert all(float(row["seconds"]) > 0 for row in rows)
