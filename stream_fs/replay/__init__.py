"""Files of records: read them, and put them through the pipeline without a broker."""

from stream_fs.replay.rewriting import Rewriter
from stream_fs.replay.sources import FileFormat, Source, file_format

__all__ = ["FileFormat", "Rewriter", "Source", "file_format"]
