from tests.support.experiments import measured, planned


def test_every_setting_of_the_judge_is_tried() -> None:
    rows = measured("judging", planned("judging", method="variance"))
    assert [row["setting"] for row in rows].count("k") == 3
    assert len(rows) == 9
    assert len({row["nmi"] for row in rows}) > 1
