"""Many values as one run of bytes, in memory that is used again for the next ones.

Fresh memory costs more than the copy into it, as the system hands it out page by page.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_fs.selector.arrays import Indices


class Memory:
    """Memory for one run of joined values after another."""

    def __init__(self) -> None:
        self._stream = BytesIO()

    def join(self, values: Sequence[bytes], room: int) -> memoryview:
        """The values one after another, then `room` zeros; whatever follows has no meaning."""
        try:
            self._fill(values, room)
        except BufferError:  # what was joined before is still in use
            self._stream = BytesIO()
            self._fill(values, room)
        return self._stream.getbuffer()

    def _fill(self, values: Sequence[bytes], room: int) -> None:
        self._stream.seek(0)
        self._stream.writelines(values)
        self._stream.write(bytes(room))


class Joined:
    """Values as one run of bytes: where each of them starts and ends, and a place beyond."""

    def __init__(
        self, memory: Memory, values: Sequence[bytes], lengths: Indices, room: int
    ) -> None:
        """Join them; at least `room` bytes can be read from `beyond` on."""
        self._memory = memory.join(values, room + 1)
        self.bytes: NDArray[np.uint8] = np.frombuffer(self._memory, np.uint8)
        self.ends = np.cumsum(lengths)
        self.starts = self.ends - lengths
        self.beyond = int(self.ends[-1]) + 1

    def items(self, size: int) -> NDArray[Any]:
        """At every offset the `size` bytes from there, as one item: nothing is copied."""
        count = max(len(self._memory) - size + 1, 0)
        return np.ndarray((count,), f"V{size}", self._memory, strides=(1,))
