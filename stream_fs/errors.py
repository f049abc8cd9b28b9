"""The errors of the package, as one tree.

StreamFsError
├── InvalidParameter        a parameter or view declaration is invalid (also a ValueError)
├── InvalidConfiguration    the configuration is invalid; lists every mistake
├── InvalidChunk            rows that the selector does not accept (also a ValueError)
├── NotFitted               no result yet: the first chunk is not complete
├── IncompatibleState       a saved or merged state does not match (also a ValueError)
├── InvalidMessage          a ranking cannot be written or read (also a ValueError)
├── CannotWrite             a file cannot be written: full disk, quota, missing directory
├── TransportError          the broker, or the client's connection to it
│   ├── RetriableError      nothing happened, except perhaps in a commit; repeat the call
│   ├── AbortableError      abort the transaction; its content may be sent again
│   ├── FencedError         the transactional id is no longer owned by this client
│   └── FatalError          this client cannot continue
└── Refusal                 the process stops; the message names the operator's choices
    ├── OffsetGone          the next input that the model needs was deleted from the log
    ├── PoisonFlood         too many bad records: the producer is broken
    ├── BadRecordRefused    a bad record, under the policy `fail`
    ├── NoOwnership         another process keeps acquiring the same partitions
    ├── BrokenFile          a file in which no records can be found
    └── CheckpointError     a checkpoint from which the process cannot continue
        ├── CorruptSnapshot         incomplete, altered, or not a snapshot
        ├── CorruptProgress         not a progress record
        ├── UnknownVersion          a format that this release does not read
        │   ├── UnknownSnapshotVersion
        │   └── UnknownProgressVersion
        ├── ForeignState            the state of another stream or group
        ├── ConfigurationChanged    the sums have another meaning under the new configuration
        ├── BoundaryMoved           a replayed chunk does not end where it was committed
        ├── CorruptJournal          not the checkpoint of a replay command
        ├── ReplayChanged           the replay command was started with other arguments or output
        └── InputChanged            the replay command was started on other records
"""

from __future__ import annotations

from collections.abc import Sequence


class StreamFsError(Exception):
    """The root of all errors that stream_fs raises."""


class InvalidParameter(StreamFsError, ValueError):
    """A parameter is out of range, or two parameters contradict each other."""


class InvalidConfiguration(StreamFsError):
    """The configuration is invalid; ``problems`` has one line per mistake."""

    def __init__(self, problems: Sequence[str]) -> None:
        """Build the message from the problems."""
        self.problems = tuple(problems)
        lines = "".join(f"\n  {problem}" for problem in self.problems)
        super().__init__(f"the configuration is invalid:{lines}")


class InvalidChunk(StreamFsError, ValueError):
    """Rows that the selector does not accept; the state is unchanged.

    ``view``, ``row`` (in the chunk) and ``feature`` (index in the view) give the position as far
    as it is known.
    """

    def __init__(
        self,
        reason: str,
        *,
        view: str | None = None,
        row: int | None = None,
        feature: int | None = None,
    ) -> None:
        """Build the message from the position and the reason."""
        self.reason = reason
        self.view = view
        self.row = row
        self.feature = feature
        position = [
            f"{label} {value!r}"
            for label, value in (("view", view), ("row", row), ("feature", feature))
            if value is not None
        ]
        super().__init__(f"{', '.join(position)}: {reason}" if position else reason)


class NotFitted(StreamFsError):
    """No result yet: the first chunk is not complete."""


class IncompatibleState(StreamFsError, ValueError):
    """A state made with other views or parameters, or a file that stream_fs did not write."""


class InvalidMessage(StreamFsError, ValueError):
    """A ranking with non-finite numbers, or a message that is not a readable ranking."""


class CannotWrite(StreamFsError):
    """The file ``path`` cannot be written; data saved earlier is intact."""

    def __init__(self, path: object, reason: str) -> None:
        """Build the message from the file and the reason of the operating system."""
        self.path = path
        super().__init__(
            f"{path} cannot be written: {reason}. Data saved earlier is intact; remove the cause, "
            "then run the same command again"
        )


class TransportError(StreamFsError):
    """An operation on the broker failed; the subclass determines what to do."""


class RetriableError(TransportError):
    """Nothing happened, except in `commit`, whose outcome is unknown; the call may be repeated."""


class AbortableError(TransportError):
    """The transaction must be aborted; its content may be sent again in a new one."""


class FencedError(TransportError):
    """This client no longer owns the transactional id; it can publish nothing more.

    ``outcome_unknown`` is False where another client owns it. It is True where none is known to:
    the outcome of a commit is unknown until the partition is acquired again, or the broker does
    not know the transaction, or has aborted it after its timeout.
    """

    def __init__(self, text: str, *, outcome_unknown: bool = False) -> None:
        """Keep whether another client is the owner."""
        self.outcome_unknown = outcome_unknown
        super().__init__(text)


class FatalError(TransportError):
    """This client cannot continue: authentication, authorisation, or a broken client."""


class Refusal(StreamFsError):
    """Continuing would lose or falsify data: the process stops, and the operator decides."""


class OffsetGone(Refusal):
    """The next input that the model needs was deleted from the log."""


class PoisonFlood(Refusal):
    """The ratio of bad records exceeds the limit: the producer is broken."""


class BadRecordRefused(Refusal):
    """A bad record, under the policy that stops at the first one."""


class NoOwnership(Refusal):
    """Another process keeps acquiring the same partitions."""


class BrokenFile(Refusal):
    """A file in which records cannot be separated, or that lacks the declared views."""


class CheckpointError(Refusal):
    """A checkpoint exists, but the process cannot continue from it."""


class CorruptSnapshot(CheckpointError):
    """A snapshot is incomplete or altered, or the bytes are not a snapshot."""


class CorruptProgress(CheckpointError):
    """The bytes are not a progress record."""


class UnknownVersion(CheckpointError):
    """Data in a format ``version`` that this release, which reads ``supported``, does not read."""

    def __init__(self, item: str, version: int, supported: int) -> None:
        """Build the message from the name of the item and the versions."""
        self.version = version
        self.supported = supported
        super().__init__(
            f"the {item} has format version {version}, this release reads version {supported}: "
            "run the release that wrote it"
        )


class UnknownSnapshotVersion(UnknownVersion):
    """A snapshot of a later release."""


class UnknownProgressVersion(UnknownVersion):
    """A progress record of a later release."""


class ForeignState(CheckpointError):
    """The state of a partition belongs, or may belong, to another stream or group.

    Two streams of one name would publish rankings under the same keys, two of one group would
    share its partitions.
    """


class ConfigurationChanged(CheckpointError):
    """The sums of a snapshot have another meaning under the present configuration.

    ``differences`` has one line per change, old → new.
    """

    def __init__(self, differences: Sequence[str], *, imported: bool = False) -> None:
        """Build the message from the differences; `imported` for a model from a file."""
        self.differences = tuple(differences)
        lines = "".join(f"\n  {difference}" for difference in self.differences)
        model, remedy = (
            ("model in the file", "nothing was changed; import it with that configuration")
            if imported
            else (
                "checkpoint",
                "restore that configuration, or begin with an empty model: "
                "`stream-fs checkpoint reset`",
            )
        )
        super().__init__(f"the {model} was made with another configuration:{lines}\n{remedy}")


class BoundaryMoved(CheckpointError):
    """A replayed chunk contains other records than when it was published.

    Continuing would skip records, or publish their dead letters twice.
    """

    def __init__(
        self, partition: tuple[str, int], chunk: int, committed: int, replayed: int
    ) -> None:
        """`committed` is the next offset of the published chunk, `replayed` that of the replay."""
        topic, number = partition
        reset = f"`stream-fs checkpoint reset --topic {topic} --partition {number}"
        self.committed = committed
        self.replayed = replayed
        super().__init__(
            f"{topic}/{number} is published up to chunk {chunk}, which ends at offset "
            f"{committed}, but the replay of the chunks since the last snapshot ends at offset "
            f"{replayed}: other records count as good than when they were published. The cause "
            "is most likely a change of limits, views or the release, an input that was "
            "recreated, or a damaged snapshot at which chunk.records or chunk.max_span changed. "
            "Undo the change, and shut the service down with SIGTERM before making it: then no "
            "chunk has to be replayed. Or keep the model as of its last snapshot, and continue "
            f"after the published records, with {reset} --keep-model --to-offset {committed}`; or "
            f"begin with an empty model with {reset}`"
        )


class CorruptJournal(CheckpointError):
    """The file is not the checkpoint of a replay, or this release does not read it."""


class ReplayChanged(CheckpointError):
    """A replay was started with other arguments: continuing would mix two in one output.

    ``differences`` has one line per change, old → new.
    """

    def __init__(self, checkpoint: str, differences: Sequence[str]) -> None:
        """Build the message from the differences."""
        self.differences = tuple(differences)
        lines = "".join(f"\n  {difference}" for difference in self.differences)
        super().__init__(
            f"the checkpoint {checkpoint} was made under other conditions:{lines}\n"
            "restore them, or begin a new replay with another checkpoint and other output"
        )


class InputChanged(CheckpointError):
    """The records differ from those of the checkpoint."""

    def __init__(self, difference: str) -> None:
        """Build the message from the difference."""
        super().__init__(
            f"{difference}; give the same files in the same order, or begin a new replay with "
            "another checkpoint and other output"
        )
