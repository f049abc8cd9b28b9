"""Files of records: read them, and put them through the pipeline without a broker.

`sources` and `rewriting` read and write files; `run` puts them through the pipeline, on a
`transport` that publishes into files and keeps its state in a `journal`.
"""

from stream_fs.replay.rewriter import Rewriter
from stream_fs.replay.sources import ARRAYS, Source, file_format, file_formats

__all__ = ["ARRAYS", "Rewriter", "Source", "file_format", "file_formats"]
