from __future__ import annotations

import pytest

from stream_fs.demo.dataset import DemoStream, prepare
from tests.support.demo import ADDRESS


@pytest.fixture(scope="session")
def stream(tmp_path_factory: pytest.TempPathFactory) -> DemoStream:
    return prepare(tmp_path_factory.mktemp("demo"), "digits", ADDRESS, 9108)
