"""Memory of a process that does the same again and again, for weeks.

Every chunk takes megabytes for its rows and gives them back. The C library would hand them to the
system each time, and the system hands them out again page by page: more work than decoding the
records. What is kept is bounded by what was in use at once.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Final

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's `mallopt`."""
_KEPT_BYTES: Final = 1 << 25
"""Blocks up to this size come from the heap, the largest that glibc takes; as much stays free."""


def keep_freed_memory() -> bool:
    """Tell the C library; False where it is another one, which decides by itself."""
    if sys.platform != "linux":
        return False
    tell = getattr(ctypes.CDLL(None), "mallopt", None)
    if tell is None:
        return False
    return all([tell(_TRIM_THRESHOLD, _KEPT_BYTES), tell(_MMAP_THRESHOLD, _KEPT_BYTES)])


def spare_what_stays() -> None:
    """Let the garbage collector pass over all that is there now: modules, mostly.

    A ranking of many features is many objects, so full collections are frequent; looking at the
    modules each time took as long as making the ranking.
    """
    gc.collect()
    gc.freeze()
