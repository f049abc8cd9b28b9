"""The fixture by which a folder's tests run on each of the selector's cores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import pytest

from stream_fs.selector.kernels.dispatch import VARIABLE, Core, why_not_compiled


# Of a module, because hypothesis runs a test many times on what a function's fixture gave it.
@pytest.fixture(scope="module", autouse=True, params=get_args(Core))
def core(request: pytest.FixtureRequest) -> Iterator[Core]:
    if request.param == "compiled" and why_not_compiled():
        pytest.skip(f"the compiled core: {why_not_compiled()}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, request.param)
        yield request.param
