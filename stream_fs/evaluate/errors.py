"""Errors of an evaluation.

StreamFsError
└── EvaluationError
    ├── DataNotFound       a directory, data set or mask file does not exist (an InvalidParameter)
    ├── DataMalformed      an archive does not have the expected content (also a ValueError)
    ├── UnknownExperiment  there is no experiment of this name (an InvalidParameter)
    ├── UnsupportedData    a method cannot process a data set (also a ValueError)
    └── ExtraMissing       an optional dependency is not installed (also an ImportError)
"""

from stream_fs.errors import InvalidParameter, StreamFsError


class EvaluationError(StreamFsError):
    """The root of the errors of this package."""


class DataNotFound(EvaluationError, InvalidParameter):
    """A directory, data set or mask file does not exist."""


class DataMalformed(EvaluationError, ValueError):
    """An archive does not have the expected content."""


class UnknownExperiment(EvaluationError, InvalidParameter):
    """There is no experiment of this name."""


class UnsupportedData(EvaluationError, ValueError):
    """A method cannot process a data set; other methods may."""


class ExtraMissing(EvaluationError, ImportError):
    """An optional dependency is not installed."""
