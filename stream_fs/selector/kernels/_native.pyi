from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stream_fs.selector.arrays import Working
from stream_fs.selector.kernels.compiled import ViewArrays

source_digest: str

class BoundViews:
    def __init__(self, arrays: Sequence[ViewArrays]) -> None: ...
    def step(
        self, weights: Sequence[float], repeats: int, epsilon: float, floor: float, ceiling: float
    ) -> float: ...
    def results(self) -> list[tuple[float, float, float]]: ...

def nearest_rows(
    products: Working,
    squares: NDArray[np.float64],
    distances: NDArray[np.float64],
    nearest: NDArray[np.int64],
) -> None: ...
def choose_features(
    squares: Working,
    scores: NDArray[np.float64],
    features: NDArray[np.int64],
    nearest: Working,
    worth: NDArray[np.float64],
    chance: float,
    rounding: float,
    rival_worth: float,
    rival: int,
    taken: NDArray[np.int64],
) -> int: ...
