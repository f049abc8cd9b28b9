import numpy as np
import pytest

from stream_fs.evaluate.builtin_datasets import BUILT_IN, digits


@pytest.mark.parametrize(
    ("name", "instances", "dimensions", "classes"),
    [
        ("digits", 1797, [64, 40, 31], 10),
        ("breast-cancer", 569, [10, 10, 10], 2),
        ("topics", 400, [800, 600, 400], 5),
    ],
)
def test_sets_have_several_non_negative_views(
    name: str, instances: int, dimensions: list[int], classes: int
) -> None:
    dataset = BUILT_IN[name]()
    assert dataset.name == name
    assert dataset.instances == instances
    assert dataset.classes == classes
    assert [x.shape for x in dataset.views] == [(instances, d) for d in dimensions]
    assert all((x >= 0).all() and np.isfinite(x).all() for x in dataset.views)


def test_a_set_is_the_same_every_time() -> None:
    first, again = BUILT_IN["topics"](), BUILT_IN["topics"]()
    assert all((a == b).all() for a, b in zip(first.views, again.views, strict=True))
    assert (first.labels == again.labels).all()


def test_sums_over_lines_of_digits() -> None:
    pixels, _, lines = digits().views
    image = pixels[7].reshape(8, 8)
    assert lines[7, 2] == image[2].sum()
    assert lines[7, 8 + 3] == image[:, 3].sum()
    assert lines[7, 16 + 7] == np.trace(image)
    assert lines[7, 16 + 9] == np.trace(image, offset=2)
