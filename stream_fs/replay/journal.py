"""The checkpoint of a replay: a state partition in a file, which grows by whole transactions.

    magic ─ transaction ─ transaction ─ …       transaction: u32 length ─ u32 CRC-32 ─ MessagePack

A transaction counts when it is there whole, so a crash leaves the last one or nothing of it; what
is torn at the end is cut off. Beside the records a transaction carries notes, which say how far
everything else was at that moment. Should several be damaged, an earlier one is as good: what
follows from it is computed again.
"""

from __future__ import annotations

import fcntl
import os
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from stream_fs.checkpoint.fields import Malformed, Plain, field, mapping, pack, unpack, whole
from stream_fs.checkpoint.files import close_quietly, sync_directory, translate_write_errors
from stream_fs.errors import CorruptJournal, NoOwnership
from stream_fs.pipeline.ports import StoredRecord
from stream_fs.replay.input import InputMark


class SavedRun(NamedTuple):
    """How a replay was begun, how long its outputs were, and which records were behind it.

    Nothing is known of what never was noted.
    """

    run: Mapping[str, object] | None
    outputs: Mapping[str, int]
    input: InputMark | None


def earlier(journal: Journal) -> SavedRun:
    """The life before; raises `CorruptJournal` for notes that none of ours has written."""
    notes = journal.notes
    try:
        run, outputs, noted = notes.get("run"), notes.get("outputs"), notes.get("input")
        lengths = {} if outputs is None else mapping(outputs)
        return SavedRun(
            None if run is None else mapping(run),
            {topic: whole(lengths, topic) for topic in lengths},
            None if noted is None else _mark(noted),
        )
    except Malformed as error:
        raise CorruptJournal(
            f"{journal.name} does not tell how far its replay was: {error}"
        ) from error


def _mark(noted: object) -> InputMark:
    fields = dict(zip(InputMark._fields, field({"input": noted}, "input", list), strict=False))
    return InputMark(*(whole(fields, name) for name in InputMark._fields))


MAGIC: Final = b"stream-fs replay 1\n"
SPARE_BYTES: Final = 64 << 20
"""Of records that newer ones have replaced; with more, the file is written anew without them."""

_FRAME: Final = struct.Struct("<II")


class Journal:
    """The records and notes; without a path they are kept in memory, and gone at the end.

    A journal for writing is locked, so that no second process can be at work on it.
    """

    def __init__(self, path: Path | None, *, writing: bool = True) -> None:
        self._path = path
        self.records: list[StoredRecord] = []
        """In the order of their offsets; older ones of the same key may be gone."""
        self.end = 0
        """The offset behind the last record, void ones included."""
        self.notes: dict[str, Any] = {}
        """The last of each name."""
        self._spare = 0
        self._file: BinaryIO | None = None
        if path is not None and writing:
            self._file = _locked(path)
            try:
                self._load(self._file)
            except BaseException:
                self.close()
                raise
        elif path is not None:
            with path.open("rb") as file:
                self._load(file)

    @property
    def name(self) -> str:
        """The file's name, for messages."""
        return str(self._path)

    def reserve(self) -> int:
        """An offset for a record; it is not given again, whatever becomes of the record."""
        self.end += 1
        return self.end - 1

    def commit(self, records: Sequence[StoredRecord], notes: Mapping[str, Plain]) -> None:
        """Add a transaction; it is safe on disk when this returns.

        Raises `CannotWrite` where the disk is full: the transaction does not count then, and the
        journal is of no more use until it is opened again.
        """
        body = self._body(records, notes)
        if self._file is not None:
            with translate_write_errors(self._path):
                self._file.write(_framed(body))
                _synced(self._file)
        self._take(records, notes)
        if self._spare > SPARE_BYTES:
            self._compact()

    def close(self) -> None:
        """Let go of the file, and of its lock."""
        if self._file is not None:
            close_quietly(self._file)
            self._file = None

    def _body(self, records: Sequence[StoredRecord], notes: Mapping[str, Plain]) -> bytes:
        rows = [[record.offset, record.key, record.value] for record in records]
        return pack({"records": rows, "end": self.end, "notes": notes})

    def _take(self, records: Sequence[StoredRecord], notes: Mapping[str, Any]) -> None:
        self.records += records
        self.notes |= notes
        # An estimate is enough: of three snapshots at least one has been replaced.
        self._spare += sum(len(record.value or b"") for record in records)

    def _load(self, file: BinaryIO) -> None:
        """Take in every whole transaction, and cut off what follows the last."""
        begun = file.read(len(MAGIC))
        if begun != MAGIC:
            if begun and not MAGIC.startswith(begun):
                raise CorruptJournal(f"{self.name} is not a checkpoint of a replay")
            good = 0
        else:
            good = len(MAGIC)
        while good and (body := _whole_frame(file)) is not None:
            try:
                self._read(body)
            except Malformed as error:
                raise CorruptJournal(
                    f"{self.name} cannot be continued from ({error}): begin anew with another "
                    "checkpoint, or run the release that wrote it"
                ) from error
            good += _FRAME.size + len(body)
        if file is self._file:
            file.seek(good)
            file.truncate()
            if not good:
                with translate_write_errors(self._path):
                    file.write(MAGIC)
                    _synced(file)
        if self._spare > SPARE_BYTES:
            self._compact()

    def _read(self, body: bytes) -> None:
        transaction = mapping(unpack(body))
        records = []
        for row in field(transaction, "records", list):
            match row:
                case [int(offset), bytes(key), bytes() | None as value]:
                    records.append(StoredRecord(offset, key, value))
                case _:
                    raise Malformed("a record is not offset, key, value")
        self.end = whole(transaction, "end")
        self._take(records, field(transaction, "notes", dict))

    def _compact(self) -> None:
        """Keep the newest record of every key; on disk under a temporary name first."""
        newest = {record.key: record for record in self.records}
        self.records = sorted(newest.values(), key=lambda record: record.offset)
        self._spare = 0
        if self._file is None or self._path is None:
            return
        unfinished = self._path.with_name(f".{self._path.name}.{os.getpid()}.tmp")
        with translate_write_errors(self._path):
            file = unfinished.open("xb")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                file.write(MAGIC + _framed(self._body(self.records, self.notes)))
                _synced(file)
                unfinished.replace(self._path)
                sync_directory(self._path.parent)
            except BaseException:
                unfinished.unlink(missing_ok=True)
                close_quietly(file)
                raise
        self._file.close()
        self._file = file


def _locked(path: Path) -> BinaryIO:
    """The file for reading and appending, made where it is not there, and ours alone."""
    with translate_write_errors(path):
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+b")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Whoever had the lock may have put another file in its place meanwhile.
        ours = os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except BlockingIOError:
        ours = False
    if not ours:
        file.close()
        raise NoOwnership(f"another process is at work on the checkpoint {path}")
    sync_directory(path.parent)
    return file


def _framed(body: bytes) -> bytes:
    return _FRAME.pack(len(body), zlib.crc32(body)) + body


def _whole_frame(file: BinaryIO) -> bytes | None:
    """The next transaction; None where none is whole."""
    head = file.read(_FRAME.size)
    if len(head) < _FRAME.size:
        return None
    length, crc = _FRAME.unpack(head)
    left = os.fstat(file.fileno()).st_size - file.tell()
    body = file.read(length) if 0 < length <= left else b""
    return body if body and zlib.crc32(body) == crc else None


def _synced(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
