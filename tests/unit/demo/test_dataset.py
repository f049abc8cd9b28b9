from __future__ import annotations

import numpy as np
import pytest

from stream_fs.demo.dataset import CHUNK, MISSING, DemoStream, digits
from stream_fs.service.configuration import load
from tests.support.demo import ADDRESS


def test_every_view_has_names_and_a_block_of_useless_features() -> None:
    views, labels = digits(np.random.default_rng(0))
    assert len(views) == 4
    for view in views:
        assert view.values.shape == (len(labels), len(view.names))
        assert np.isfinite(view.values).all()
        assert len(set(view.names)) == len(view.names)
        useless = [name for name, bad in zip(view.names, view.useless, strict=True) if bad]
        assert all(name.startswith("useless") for name in useless)
        assert 0.1 < len(useless) / len(view.names) < 0.3
    assert views[0].shape is not None
    assert np.prod(views[0].shape) == len(views[0].names)


def test_the_service_accepts_the_files(stream: DemoStream) -> None:
    configuration = load(stream.config, {}, [])
    assert [view.name for view in configuration.views] == [view.name for view in stream.views]
    assert configuration.chunk.records == CHUNK
    assert configuration.kafka.bootstrap == ADDRESS
    with np.load(stream.data) as arrays:
        for view in stream.views:
            rows = arrays[view.name]
            assert rows.shape == (stream.records, len(view.names))
            missing = np.isnan(rows).all(axis=1)
            assert missing.mean() == pytest.approx(MISSING, abs=1e-3)
            assert np.isfinite(rows[~missing]).all()
