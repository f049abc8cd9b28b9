"""The checkpoint of a replay: a file that stands for a state partition, a log of transactions.

    magic ─ transaction ─ transaction ─ …       transaction: u32 length ─ u32 CRC-32 ─ MessagePack

Only a complete transaction counts: a crash leaves all or nothing of the last one, and an incomplete
end is truncated. Besides records, a transaction contains notes, with the lengths of the outputs and
the position in the input at that time. If transactions at the end are damaged, the replay continues
from an earlier one and computes the rest again.
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

MAGIC: Final = b"stream-fs replay 1\n"
MAX_REPLACED_BYTES: Final = 64 << 20
"""Of records that newer ones have replaced; above this the file is rewritten without them."""

_FRAME: Final = struct.Struct("<II")


class Journal:
    """Records and notes in a file, or in memory if there is no path.

    A journal for writing is locked against other processes.
    """

    def __init__(self, path: Path | None, *, writing: bool = True) -> None:
        self._path = path
        self.records: list[StoredRecord] = []
        """In the order of their offsets; some that were replaced may be missing."""
        self.end = 0
        """The offset behind the last record, aborted ones included."""
        self.notes: dict[str, Any] = {}
        """The newest by name."""
        self._replaced_bytes = 0
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
        """The name of the file, for messages."""
        return str(self._path)

    def reserve(self) -> int:
        """A new offset for a record, which is used once, even if the record is aborted."""
        self.end += 1
        return self.end - 1

    def commit(self, records: Sequence[StoredRecord], notes: Mapping[str, Plain]) -> None:
        """Append a transaction, and synchronise it to disk.

        Raises `CannotWrite` where the disk is full: then the transaction does not count, and the
        journal has to be opened again.
        """
        body = self._body(records, notes)
        if self._file is not None:
            with translate_write_errors(self._path):
                self._file.write(_frame(body))
                _synchronise(self._file)
        self._add(records, notes)
        if self._replaced_bytes > MAX_REPLACED_BYTES:
            self._compact()

    def close(self) -> None:
        """Close the file, which releases the lock."""
        if self._file is not None:
            close_quietly(self._file)
            self._file = None

    def _body(self, records: Sequence[StoredRecord], notes: Mapping[str, Plain]) -> bytes:
        rows = [[record.offset, record.key, record.value] for record in records]
        return pack({"records": rows, "end": self.end, "notes": notes})

    def _add(self, records: Sequence[StoredRecord], notes: Mapping[str, Any]) -> None:
        self.records += records
        self.notes |= notes
        # An estimate: of three snapshots at least one has been replaced.
        self._replaced_bytes += sum(len(record.value or b"") for record in records)

    def _load(self, file: BinaryIO) -> None:
        """Read every complete transaction, and truncate what follows the last."""
        magic = file.read(len(MAGIC))
        if magic != MAGIC:
            if magic and not MAGIC.startswith(magic):
                raise CorruptJournal(f"{self.name} is not a checkpoint of a replay")
            end = 0
        else:
            end = len(MAGIC)
        while end and (body := _read_frame(file)) is not None:
            try:
                self._read(body)
            except Malformed as error:
                raise CorruptJournal(
                    f"{self.name} cannot be continued from ({error}): start a new replay with "
                    "another checkpoint, or run the release that wrote it"
                ) from error
            end += _FRAME.size + len(body)
        if file is self._file:
            file.seek(end)
            file.truncate()
            if not end:
                with translate_write_errors(self._path):
                    file.write(MAGIC)
                    _synchronise(file)
        if self._replaced_bytes > MAX_REPLACED_BYTES:
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
        self._add(records, field(transaction, "notes", dict))

    def _compact(self) -> None:
        """Keep the newest record of every key; rewrites the file under a temporary name."""
        newest = {record.key: record for record in self.records}
        self.records = sorted(newest.values(), key=lambda record: record.offset)
        self._replaced_bytes = 0
        if self._file is None or self._path is None:
            return
        unfinished = self._path.with_name(f".{self._path.name}.{os.getpid()}.tmp")
        with translate_write_errors(self._path):
            file = unfinished.open("xb")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                file.write(MAGIC + _frame(self._body(self.records, self.notes)))
                _synchronise(file)
                unfinished.replace(self._path)
                sync_directory(self._path.parent)
            except BaseException:
                unfinished.unlink(missing_ok=True)
                close_quietly(file)
                raise
        self._file.close()
        self._file = file


class SavedRun(NamedTuple):
    """The notes of an earlier run: its facts, the lengths of its outputs, the mark of its input.

    Those that were never written are None or empty.
    """

    run: Mapping[str, object] | None
    outputs: Mapping[str, int]
    input: InputMark | None


def read_saved_run(journal: Journal) -> SavedRun:
    """The notes in a journal; raises `CorruptJournal` where they are not notes of a replay."""
    notes = journal.notes
    try:
        run, outputs, noted = notes.get("run"), notes.get("outputs"), notes.get("input")
        lengths = {} if outputs is None else mapping(outputs)
        return SavedRun(
            None if run is None else mapping(run),
            {topic: whole(lengths, topic) for topic in lengths},
            None if noted is None else _input_mark(noted),
        )
    except Malformed as error:
        raise CorruptJournal(
            f"{journal.name} does not contain the notes of a replay: {error}"
        ) from error


def _input_mark(noted: object) -> InputMark:
    fields = dict(zip(InputMark._fields, field({"input": noted}, "input", list), strict=False))
    return InputMark(*(whole(fields, name) for name in InputMark._fields))


def _locked(path: Path) -> BinaryIO:
    """The file, open for reading and appending, created if missing, and locked."""
    with translate_write_errors(path):
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+b")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The previous owner of the lock may have replaced the file meanwhile.
        locked = os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except BlockingIOError:
        locked = False
    if not locked:
        file.close()
        raise NoOwnership(f"another process uses the checkpoint {path}")
    sync_directory(path.parent)
    return file


def _frame(body: bytes) -> bytes:
    return _FRAME.pack(len(body), zlib.crc32(body)) + body


def _read_frame(file: BinaryIO) -> bytes | None:
    """The body of the next transaction; None if it is not complete."""
    head = file.read(_FRAME.size)
    if len(head) < _FRAME.size:
        return None
    length, crc = _FRAME.unpack(head)
    left = os.fstat(file.fileno()).st_size - file.tell()
    body = file.read(length) if 0 < length <= left else b""
    return body if body and zlib.crc32(body) == crc else None


def _synchronise(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
