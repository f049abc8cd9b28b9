"""Everything that can go wrong, as one tree.

StreamFsError
├── InvalidParameter    a parameter or view declaration that cannot be used (also a ValueError)
├── InvalidConfiguration    a configuration with problems, all of them listed
├── InvalidChunk        rows that the selector cannot take (also a ValueError)
├── NotFitted           asked for a result before the first chunk was complete
├── IncompatibleState   a saved or merged state that does not belong here (also a ValueError)
├── InvalidMessage      a ranking that cannot be written or read (also a ValueError)
├── CannotWrite         a file cannot be written: a full disk, a limit, or no place for it
├── TransportError      the broker or the client to it
│   ├── RetriableError      nothing happened; the same call may be made again
│   ├── AbortableError      the transaction must be aborted; its content may be sent again
│   ├── FencedError         somebody else owns the partition now
│   └── FatalError          this client cannot go on
└── Refusal             it will not go on, and says what the operator can do
    ├── OffsetGone          the input that the model needs is no longer in the log
    ├── PoisonFlood         too many bad records: the producer is broken
    ├── BadRecordRefused    a bad record under the policy `fail`
    ├── NoOwnership         another process keeps taking the same partitions
    ├── BrokenFile          a file of records in which they cannot be found
    └── CheckpointError     a checkpoint that cannot be continued from
        ├── CorruptSnapshot         torn, incomplete, or not a snapshot at all
        ├── CorruptProgress         not a progress record
        ├── UnknownVersion          written in a format that this release does not read
        │   ├── UnknownSnapshotVersion
        │   └── UnknownProgressVersion
        ├── ForeignState            the state of a stream or group that is not this one's
        ├── ConfigurationChanged    its sums mean something else under the present configuration
        ├── BoundaryMoved           a chunk, replayed, does not end where it was committed
        ├── CorruptJournal          not the checkpoint of a replay
        ├── ReplayChanged           of a replay with other arguments or other output
        └── InputChanged            of a replay of other records
"""

from __future__ import annotations

from collections.abc import Sequence


class StreamFsError(Exception):
    """The root: catch it to catch everything that stream_fs raises on purpose."""


class InvalidParameter(StreamFsError, ValueError):
    """A parameter is out of its range, or two of them contradict each other."""


class InvalidConfiguration(StreamFsError):
    """The configuration cannot be used; ``problems`` has one line for each thing to change."""

    def __init__(self, problems: Sequence[str]) -> None:
        """Compose the message from the problems."""
        self.problems = tuple(problems)
        lines = "".join(f"\n  {problem}" for problem in self.problems)
        super().__init__(f"the configuration cannot be used:{lines}")


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


class CannotWrite(StreamFsError):
    """A file cannot be written, for want of room or of a place; what was saved before is whole.

    ``path`` is the file.
    """

    def __init__(self, path: object, reason: str) -> None:
        """Compose the message from the file and the system's reason."""
        self.path = path
        super().__init__(
            f"{path} cannot be written: {reason}. What was saved before is whole: once it can be, "
            "give the same command again"
        )


class TransportError(StreamFsError):
    """Something went wrong between us and the broker; the subclass says what can be done."""


class RetriableError(TransportError):
    """Nothing happened; the same call may be made again."""


class AbortableError(TransportError):
    """The transaction must be aborted; its content may be sent again in a new one."""


class FencedError(TransportError):
    """Somebody else owns the partition now; nothing more can be published for it.

    Or it is ``given_up`` and nobody else's: only who takes over again can tell how a commit ended,
    or the broker does not know the transaction, or has aborted it after its timeout.
    """

    def __init__(self, text: str, *, given_up: bool = False) -> None:
        """Keep who it was."""
        self.given_up = given_up
        super().__init__(text)


class FatalError(TransportError):
    """This client cannot go on: authentication, authorisation, or a broken client."""


class Refusal(StreamFsError):
    """Going on would lose or falsify something: stop, and let the operator choose a way out."""


class OffsetGone(Refusal):
    """The input that the model needs next is no longer in the log."""


class PoisonFlood(Refusal):
    """So many records are bad that the producer must be broken."""


class BadRecordRefused(Refusal):
    """A bad record, where the policy is to stop at the first."""


class NoOwnership(Refusal):
    """Another process keeps taking over the same partitions."""


class BrokenFile(Refusal):
    """A file in which the records cannot be told apart, or that lacks the declared views."""


class CheckpointError(Refusal):
    """A checkpoint is there, but cannot be continued from."""


class CorruptSnapshot(CheckpointError):
    """A snapshot is torn, incomplete or altered, or the bytes never were one."""


class CorruptProgress(CheckpointError):
    """The bytes are not a progress record."""


class UnknownVersion(CheckpointError):
    """Written in a format that this release does not read.

    ``found`` is the version of the format, ``known`` the one that this release reads.
    """

    def __init__(self, what: str, found: int, known: int) -> None:
        """Compose the message from the thing and the versions."""
        self.found = found
        self.known = known
        super().__init__(
            f"the {what} has format version {found}, this release reads version {known}: "
            "run the release that wrote it"
        )


class UnknownSnapshotVersion(UnknownVersion):
    """A snapshot that another release wrote."""


class UnknownProgressVersion(UnknownVersion):
    """A progress record that another release wrote."""


class ForeignState(CheckpointError):
    """The state of a partition is, or may be, that of another stream or group.

    With the same stream name both would publish rankings under it, with the same group they would
    share its partitions.
    """


class ConfigurationChanged(CheckpointError):
    """The sums of a snapshot mean something else under the present configuration.

    ``differences`` has one line for each thing that changed, old → new.
    """

    def __init__(self, differences: Sequence[str], *, imported: bool = False) -> None:
        """Compose the message from the differences; the model may be one that is `imported`."""
        self.differences = tuple(differences)
        lines = "".join(f"\n  {difference}" for difference in self.differences)
        what, advice = (
            ("model in the file", "nothing was changed; import it with that configuration")
            if imported
            else (
                "checkpoint",
                "go back to that configuration, or start the model anew with "
                "`stream-fs checkpoint reset`",
            )
        )
        super().__init__(f"the {what} was made with another configuration:{lines}\n{advice}")


class BoundaryMoved(CheckpointError):
    """A chunk that is computed again has other records than when it was published.

    Going on would skip records, or publish their dead letters a second time.
    """

    def __init__(self, partition: tuple[str, int], chunk: int, committed: int, found: int) -> None:
        """`committed` is the offset behind the published `chunk`, `found` where the replay is."""
        topic, number = partition
        reset = f"`stream-fs checkpoint reset --topic {topic} --partition {number}"
        self.committed = committed
        self.found = found
        super().__init__(
            f"{topic}/{number} is published up to chunk {chunk}, which ends at offset "
            f"{committed}, but the chunks since the last snapshot, computed again, lead to "
            f"offset {found}: other records count as good than when they were published. Most "
            "likely limits, views or the release have changed since, or the input was written "
            "anew, or the snapshot with which chunk.records or chunk.max_span changed is "
            "damaged. Go back to what it was, and end the service in order (SIGTERM) before "
            "the change: that leaves nothing to compute again. Or keep the model as of its "
            f"last snapshot, and go on behind what is published, with {reset} --keep-model "
            f"--to-offset {committed}`; or begin anew with {reset}`"
        )


class CorruptJournal(CheckpointError):
    """The file is not the checkpoint of a replay, or not one that this release reads."""


class ReplayChanged(CheckpointError):
    """A replay was begun otherwise: going on would mix two of them in one output.

    ``differences`` has one line for each thing that changed, old → new.
    """

    def __init__(self, checkpoint: str, differences: Sequence[str]) -> None:
        """Compose the message from the differences."""
        self.differences = tuple(differences)
        lines = "".join(f"\n  {difference}" for difference in self.differences)
        super().__init__(
            f"the checkpoint {checkpoint} belongs to a replay that was begun otherwise:{lines}\n"
            "go back to what it was, or begin anew with another checkpoint and other output"
        )


class InputChanged(CheckpointError):
    """The records are not those that the checkpoint was made of."""

    def __init__(self, difference: str) -> None:
        """Compose the message from what was found."""
        super().__init__(
            f"{difference}; give the same files in the same order, or begin anew with another "
            "checkpoint and other output"
        )
