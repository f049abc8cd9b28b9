"""What was freed stays with the process."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from stream_fs.service.process.memory import freeze_loaded_objects

FAULTS = """
import resource
import numpy as np
from stream_fs.service.process.memory import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        del [np.ones(300_000) for _ in range(10)][:]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

assert keep_freed_memory()
faults()
print(faults())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="mallopt is part of glibc")
def test_memory_that_is_used_again_is_not_asked_for_again() -> None:
    run = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    # Each of the 200 arrays has 586 pages.
    assert int(run.stdout) < 10 * 586


def test_what_is_there_is_not_looked_at_again() -> None:
    kept: list[object] = [[]]
    try:
        freeze_loaded_objects()
        assert gc.get_freeze_count() > 1000
        assert not any(found is kept for found in gc.get_objects())
    finally:
        gc.unfreeze()
