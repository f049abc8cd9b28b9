"""Memory settings of a long-running process.

Every chunk allocates megabytes for its rows and frees them. By default the C library returns them
to the system each time, and the page faults of the next chunk cost more than decoding its records.
The memory kept is bounded by the largest amount ever in use.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Final

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's `mallopt`."""
_KEPT_BYTES: Final = 1 << 25
"""Blocks up to this size, glibc's maximum, come from the heap; as much free memory is kept."""


def keep_freed_memory() -> bool:
    """Configure glibc to keep freed memory; False with another C library."""
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return all([mallopt(_TRIM_THRESHOLD, _KEPT_BYTES), mallopt(_MMAP_THRESHOLD, _KEPT_BYTES)])


def freeze_loaded_objects() -> None:
    """Exclude all present objects, mostly modules, from garbage collection.

    A ranking of many features consists of many objects, so that full collections are frequent;
    traversing the modules each time took as long as computing the ranking.
    """
    gc.collect()
    gc.freeze()
