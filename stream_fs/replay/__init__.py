"""Files of records: reading and converting them, and running the pipeline on them.

`sources` and `rewriter` read and convert records; `run` runs the pipeline on them without a broker,
with a `transport` that publishes into files and keeps its state in a `journal`.
"""

from stream_fs.replay.rewriter import Rewriter
from stream_fs.replay.sources import ARRAYS, Source, file_format, file_formats

__all__ = ["ARRAYS", "Rewriter", "Source", "file_format", "file_formats"]
