"""Everything that can go wrong, as one tree.

StreamFsError
├── InvalidParameter    a parameter or view declaration that cannot be used (also a ValueError)
├── InvalidChunk        rows that the selector cannot take (also a ValueError)
├── NotFitted           asked for a result before the first chunk was complete
├── IncompatibleState   a saved or merged state that does not belong here (also a ValueError)
└── InvalidMessage      a ranking that cannot be written or read (also a ValueError)
"""

from __future__ import annotations


class StreamFsError(Exception):
    """The root: catch it to catch everything that stream_fs raises on purpose."""


class InvalidParameter(StreamFsError, ValueError):
    """A parameter is out of its range, or two of them contradict each other."""


class InvalidChunk(StreamFsError, ValueError):
    """Rows that the selector cannot take; the state is as it was before the call.

    ``view``, ``row`` and ``feature`` say where, as far as it is known: the row within the chunk
    that was handed in, the feature by its index in the view.
    """

    def __init__(
        self,
        reason: str,
        *,
        view: str | None = None,
        row: int | None = None,
        feature: int | None = None,
    ) -> None:
        """Compose the message from the place and the reason."""
        self.reason = reason
        self.view = view
        self.row = row
        self.feature = feature
        place = [
            f"{label} {value!r}"
            for label, value in (("view", view), ("row", row), ("feature", feature))
            if value is not None
        ]
        super().__init__(f"{', '.join(place)}: {reason}" if place else reason)


class NotFitted(StreamFsError):
    """There is no result yet: the first chunk is not complete."""


class IncompatibleState(StreamFsError, ValueError):
    """A state that was made with other views or parameters, or a file that is not one of ours."""


class InvalidMessage(StreamFsError, ValueError):
    """A ranking with numbers that are not finite, or a message that is no ranking we can read."""
