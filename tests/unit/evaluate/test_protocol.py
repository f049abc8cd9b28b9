from itertools import pairwise

import numpy as np
import pytest

from stream_fs.evaluate.datasets import DataSet
from stream_fs.evaluate.judges import Agreement
from stream_fs.evaluate.protocol import (
    JUDGE_VARIANTS,
    JudgePanel,
    Trial,
    chunks,
    even_slices,
    make_trial,
    mean_agreement,
)
from tests.support.planted_views import planted_views


def numbered_rows(instances: int = 60, views: int = 3) -> DataSet:
    number = np.arange(1.0, instances + 1)[:, None]
    return DataSet("numbered", (number,) * views, np.arange(instances) % 4)


@pytest.mark.parametrize(
    ("instances", "clusters", "sizes"),
    [
        (116, 5, [100, 16]),
        (203, 4, [100, 103]),
        (2000, 10, [200] * 10),
        (50, 4, [50]),
    ],
)
def test_chunks_cover_the_stream(instances: int, clusters: int, sizes: list[int]) -> None:
    cut = list(chunks(instances, clusters))
    assert [piece.stop - piece.start for piece in cut] == sizes
    assert cut[0].start == 0
    assert cut[-1].stop == instances
    assert all(before.stop == after.start for before, after in pairwise(cut))


def test_even_slices_are_never_empty() -> None:
    assert list(even_slices(3, 5, 4)) == [slice(3, 4), slice(4, 5)]
    assert list(even_slices(5, 10, 2)) == [slice(5, 7), slice(7, 10)]


@pytest.mark.parametrize("missing", [0.1, 0.3, 0.5])
def test_every_instance_keeps_a_view_and_every_view_loses_its_share(missing: float) -> None:
    trial, _ = make_trial(numbered_rows(), 3, missing)
    assert trial.data.present.any(axis=1).all()
    assert (~trial.data.present).sum(axis=0).tolist() == [round(60 * missing)] * 3


def test_rows_labels_and_published_masks_are_shuffled_together() -> None:
    dataset = numbered_rows()
    mask = np.random.default_rng(0).random((60, 3)) < 0.7
    trial, labels = make_trial(dataset, 1, 0.5, mask)
    at = trial.data.views[0][:, 0].astype(int) - 1
    assert sorted(at.tolist()) == list(range(60))
    assert at.tolist() != list(range(60))
    assert (labels == dataset.labels[at]).all()
    assert (trial.data.present == mask[at]).all()


def test_a_repetition_is_a_seed() -> None:
    dataset = numbered_rows()
    first, again, other = (make_trial(dataset, r, 0.5)[0].data for r in (2, 2, 3))
    assert (first.present == again.present).all()
    assert (first.views[0] == again.views[0]).all()
    assert (first.views[0] != other.views[0]).any()


def test_judges_do_not_read_missing_rows_and_are_deterministic() -> None:
    data, labels = planted_views()
    masks = [np.arange(24) < 12] * 3
    first, again = (JudgePanel(Trial(data, 4, 0), labels).judge(masks) for _ in range(2))
    assert set(first) == set(JUDGE_VARIANTS)
    assert first == again
    assert all(value.nmi > 0.8 for value in first.values())
    for v, x in enumerate(data.views):
        x[~data.present[:, v]] = 1e6
    assert JudgePanel(Trial(data, 4, 0), labels).judge(masks) == first


def test_a_selection_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    data, labels = planted_views()
    panel = JudgePanel(Trial(data, 4, 0), labels, ("spectral raw",))
    masks = [np.arange(24) < 12] * 3
    first = panel.judge(masks)
    monkeypatch.setattr(panel, "_judge", lambda _: pytest.fail("judged again"))
    assert panel.judge([mask.copy() for mask in masks]) is first
    assert list(first) == ["spectral raw"]


def test_draws_are_averaged() -> None:
    mean = mean_agreement([Agreement(0.2, 0.1, 0.0), Agreement(0.4, 0.3, 1.0)])
    assert (mean.nmi, mean.ari, mean.f) == pytest.approx((0.3, 0.2, 0.5))
