import numpy as np
import pytest

from stream_fs.evaluate.experiments import traits
from tests.support.experiments import measured, planned


def test_default_keeps_useless_features_out_and_variance_does_not() -> None:
    default, variance = (
        measured("traits", planned("traits", method=name))[0] for name in ("default", "variance")
    )
    for kind in ("noise", "loud", "constant", "heavy-tailed"):
        assert float(default[f"useless: {kind}"]) < 0.1
    assert float(default["repeats"]) < 0.1
    assert float(default["auc"]) > 0.95
    assert float(default["rank correlation in other units"]) > 0.99
    assert float(variance["useless: loud"]) > 0.9
    assert float(variance["repeats"]) > 0.1


def test_shares_areas_and_repeats_by_hand() -> None:
    kinds = ["informative", "noise", "informative", "loud"]
    orders = [np.array([0, 3, 2, 1]), np.array([2, 0, 1, 3])]
    assert traits.selected_share(orders, kinds, "loud") == pytest.approx(0.5)  # first view only
    assert traits.selected_share(orders, kinds, "noise") == 0
    # first view: 0 before both others, 2 before noise alone: 3 of 4; second view: all four
    assert traits.area(orders, kinds) == pytest.approx((3 / 4 + 1) / 2)
    assert traits.correlation(orders, orders) == pytest.approx(1)
    assert traits.correlation([orders[0]], [orders[0][::-1]]) == pytest.approx(-1)


def test_a_copy_is_a_repeat_and_a_second_original_is_not() -> None:
    planted = traits.with_copies(0)
    originals = np.array(planted.originals)
    informative = np.array([kind == "informative" for kind in planted.kinds])
    firsts = [int(np.flatnonzero((originals == o) & informative)[0]) for o in range(8)]
    copies = [int(np.flatnonzero((originals == o) & informative)[1]) for o in range(4)]
    rest = [i for i in range(len(originals)) if i not in firsts]
    assert traits.repeats([np.array(firsts + rest)] * 3, planted) == 0
    with_copies = firsts[:4] + copies
    rest = [i for i in range(len(originals)) if i not in with_copies]
    assert traits.repeats([np.array(with_copies + rest)] * 3, planted) == 0.5


def test_copies_carry_what_their_originals_carry() -> None:
    planted = traits.with_copies(0)
    originals = np.array(planted.originals)
    for o in range(8):
        columns = planted.trial.data.views[0][:, originals == o]
        assert columns.shape[1] == 3
        assert np.corrcoef(columns.T).min() == pytest.approx(1)
