import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_fs.evaluate.protocol import remove_views


@given(
    instances=st.integers(1, 60),
    views=st.integers(1, 6),
    share=st.floats(0, 1),
    seed=st.integers(0, 5),
)
def test_every_instance_keeps_a_view_and_views_lose_alike(
    instances: int, views: int, share: float, seed: int
) -> None:
    present = remove_views(instances, views, share, np.random.default_rng(seed))
    removed = (~present).sum(axis=0)
    assert present.any(axis=1).all()
    assert removed.max() - removed.min() <= 1
    wanted = round(share * instances)
    if views * wanted <= (views - 1) * instances:
        assert (removed == wanted).all()
    else:
        assert removed.sum() == (views - 1) * instances  # as many as can go


@pytest.mark.parametrize("views", [2, 3, 6])
def test_half_of_every_view_is_removed_exactly(views: int) -> None:
    present = remove_views(200, views, 0.5, np.random.default_rng(1))
    assert ((~present).sum(axis=0) == 100).all()


def test_same_seed_same_mask_other_seed_another() -> None:
    first, again, other = (remove_views(50, 3, 0.4, np.random.default_rng(s)) for s in (4, 4, 5))
    assert (first == again).all()
    assert (first != other).any()


def test_every_entry_is_removed_about_as_often() -> None:
    masks = [remove_views(12, 3, 0.5, np.random.default_rng(s)) for s in range(2000)]
    rate = 1 - np.mean(masks, axis=0)
    assert np.abs(rate - 0.5).max() < 0.05  # four standard errors are 0.045


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_out_of_range_is_an_error(share: float) -> None:
    with pytest.raises(ValueError, match="share must lie in"):
        remove_views(5, 2, share, np.random.default_rng(0))
