"""What can go wrong in an evaluation.

StreamFsError
└── EvaluationError
    ├── DataNotFound    the directory, data set or mask file is not there (an InvalidParameter)
    ├── DataMalformed   an archive is there but is not what it should be (also a ValueError)
    ├── UnknownName     an experiment that is not there (an InvalidParameter)
    ├── MethodRefused   a method cannot take these data (also a ValueError)
    └── ExtraMissing    an optional dependency is not installed (also an ImportError)
"""

from stream_fs.errors import InvalidParameter, StreamFsError


class EvaluationError(StreamFsError):
    """The root of the errors of this package."""


class DataNotFound(EvaluationError, InvalidParameter):
    """A directory, data set or mask file is not there."""


class DataMalformed(EvaluationError, ValueError):
    """An archive does not hold what it should."""


class UnknownName(EvaluationError, InvalidParameter):
    """An experiment was asked for that is not there."""


class MethodRefused(EvaluationError, ValueError):
    """A method that is compared cannot take these data; the others can."""


class ExtraMissing(EvaluationError, ImportError):
    """An optional dependency is not installed."""
