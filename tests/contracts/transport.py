"""The contract of `stream_fs.pipeline.ports`, for all implementations.

A backend is tested by a subclass with a fixture `backend`:

    class TestMyBackend(TransportContract):
        @pytest.fixture
        def backend(self) -> Backend: ...
"""

from __future__ import annotations

from tests.contracts.input import InputContract
from tests.contracts.publisher import PublisherContract
from tests.contracts.state_log import StateLogContract
from tests.contracts.state_log_reader import StateLogReaderContract


class TransportContract(PublisherContract, StateLogContract, StateLogReaderContract, InputContract):
    """All contracts."""
