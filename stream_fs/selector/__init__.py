"""I²MUFS: online unsupervised feature selection for many views, some of them missing.

The method of "Incremental Unsupervised Feature Selection for Dynamic Incomplete Multi-view Data"
(Huang, Guo, Yi, Li, Li). Matrices are instances × features; N rows in a chunk, d features in a
view, K clusters. `MultiViewSelector` is the comfortable form; underneath, `update` is a pure
function from state and chunk to state and report:

    params ─ initial_state ─┐
    read_chunk ─────────────┴─ update ─ (merge) ─ rank
"""

from stream_fs.selector.chunk import Chunk, read_chunk
from stream_fs.selector.estimator import MultiViewSelector
from stream_fs.selector.merge.combine import merge
from stream_fs.selector.parameters import Params, View, params
from stream_fs.selector.ranking import Ranking, ViewRanking, rank
from stream_fs.selector.state import State, initial_state
from stream_fs.selector.update import Report, update

__all__ = [
    "Chunk",
    "MultiViewSelector",
    "Params",
    "Ranking",
    "Report",
    "State",
    "View",
    "ViewRanking",
    "initial_state",
    "merge",
    "params",
    "rank",
    "read_chunk",
    "update",
]
