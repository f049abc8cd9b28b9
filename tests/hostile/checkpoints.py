"""Checkpoints: progress, snapshots, exported files and the journal of a replay."""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TypeVar

import msgpack

from stream_fs.checkpoint import (
    MergedPart,
    MergeProgress,
    Owner,
    Progress,
    Restored,
    SnapshotPlace,
    StateKeys,
    decode_merge_progress,
    decode_progress,
    decode_snapshot,
    encode_merge_progress,
    encode_progress,
    encode_snapshot,
    parse_key,
)
from stream_fs.checkpoint.fields import Plain
from stream_fs.checkpoint.files import Export, read_export, write_export
from stream_fs.pipeline.checkpoint_reader import read_usable_snapshot
from stream_fs.pipeline.model import decode_model
from stream_fs.pipeline.ports import Partition, StoredRecord
from stream_fs.pipeline.state_owner import locate
from stream_fs.replay.input import RecordSequence
from stream_fs.replay.journal import MAGIC, Journal, read_saved_run
from stream_fs.replay.run import check_unchanged
from stream_fs.selector import rank
from stream_fs.wire import digest
from tests.hostile.target import Target
from tests.support.models import model_params, trained_state

T = TypeVar("T")
PLACE = Partition("in", 0)
PARAMS = model_params(sketch=4)
STATE = trained_state(PARAMS)
EXTRA: dict[str, Plain] = {
    "chosen": {"dense": [1, 2]},
    "cut": [20, 60, None],
    "as_of": 7,
    "letters": 0,
}
SNAPSHOT = encode_snapshot(STATE, 140, EXTRA, part_bytes=6_000)
BODY = msgpack.unpackb(msgpack.unpackb(SNAPSHOT.manifest)["body"])
JOINED = b"".join(SNAPSHOT.parts)
OWNER = Owner("s", "g")
PROGRESS = Progress(
    chunk=2,
    from_offset=70,
    next_offset=140,
    snapshots=(SnapshotPlace(1, 2, 0), SnapshotPlace(0, 1, 1)),
    digest=digest(b"ranking"),
    fingerprint=PARAMS.fingerprint,
    owner=OWNER,
)
MERGED = MergeProgress(
    sequence=4,
    parts=(MergedPart("in", 0, 3), MergedPart("in", 1, 9)),
    chosen={"dense": (0, 3, 11), "counts": (2,)},
    fingerprint=PARAMS.fingerprint,
    owner=OWNER,
)
NOTES: dict[str, Plain] = {
    "run": {"stream.name": "'a'"},
    "outputs": {"rankings": 12},
    "input": [3, 100, 12345],
}


class Log:
    """A state partition with these records."""

    def __init__(self, records: list[tuple[bytes, bytes | None]]) -> None:
        self._records = [StoredRecord(offset, *record) for offset, record in enumerate(records)]

    def start(self) -> int:
        return 0

    def end(self) -> int:
        return len(self._records)

    def scan(self, start: int, end: int) -> Iterator[StoredRecord | None]:
        yield from self._records[max(0, start) : max(0, end)]

    def close(self) -> None:
        pass


def ranked(restored: Restored) -> None:
    """A restored model can be ranked."""
    rank(decode_model(restored).state)


def sealed(body: bytes) -> bytes:
    """A manifest with a valid checksum, which anyone can compute."""
    whole = {"v": 1, "sha256": hashlib.sha256(body).digest(), "body": body}
    return bytes(msgpack.packb(whole))


def manifest(data: bytes) -> None:
    ranked(decode_snapshot(data, SNAPSHOT.parts, PARAMS))


def body(data: bytes) -> None:
    ranked(decode_snapshot(sealed(data), SNAPSHOT.parts, PARAMS))


def parts(data: bytes) -> None:
    """Any content of the parts, with a manifest that matches."""
    cut = [data[:1000], data[1000:]]
    own = {"parts": 2, "size": len(data), "checksum": hashlib.sha256(data).digest()}
    ranked(decode_snapshot(sealed(msgpack.packb({**BODY, **own})), cut, PARAMS))


def state_log(data: bytes) -> None:
    """A progress record, and the snapshots to which it should refer."""
    parse_key(data)
    for keys in (StateKeys(OWNER, *PLACE), StateKeys(None, *PLACE)):
        snapshot = [(keys.manifest(1), SNAPSHOT.manifest)] + [
            (keys.part(1, number), part) for number, part in enumerate(SNAPSHOT.parts)
        ]
        junk = [(data[:20], data), (keys.manifest(0), data), (OWNER.merge_key, data)]
        log = Log([*snapshot, *junk, (keys.progress, data)])
        for found in _run(locate(log, PLACE, OWNER, lambda _: 0)):
            progress = found.progress
            if progress is None:
                continue
            for restored, _ in _run(read_usable_snapshot(log, found.keys, progress, PARAMS)):
                ranked(restored)


def _run(steps: Generator[None, None, T | None]) -> list[T]:
    """The result of the steps, if there is one."""
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            return [] if ended.value is None else [ended.value]


class InFile:
    """Decoders of files."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "bytes"

    def path(self, data: bytes) -> Path:
        self._path.write_bytes(data)
        return self._path

    def export(self, data: bytes) -> None:
        export = read_export(self.path(data))
        ranked(decode_snapshot(export.snapshot.manifest, export.snapshot.parts, PARAMS))

    def journal(self, data: bytes) -> None:
        journal = Journal(self.path(data))
        journal.close()
        before = read_saved_run(journal)
        check_unchanged(journal.name, before.run or {}, {"stream.name": "'a'"})
        RecordSequence([], before.input)

    def journal_body(self, data: bytes) -> None:
        frame = struct.pack("<II", len(data), zlib.crc32(data)) + data
        self.journal(MAGIC + frame)


def targets(folder: Path) -> Iterator[Target]:
    files = InFile(folder)
    progress, merged = encode_progress(PROGRESS), encode_merge_progress(MERGED)
    yield Target(
        name="progress",
        attempt=decode_progress,
        seeds=[progress],
        documents=[msgpack.unpackb(progress)],
        weight=40,
    )
    yield Target(
        name="merge progress",
        attempt=decode_merge_progress,
        seeds=[merged],
        documents=[msgpack.unpackb(merged)],
        weight=40,
    )
    yield Target(
        name="state log",
        attempt=state_log,
        seeds=[progress, SNAPSHOT.manifest],
        documents=[msgpack.unpackb(progress)],
        weight=40,
    )
    yield Target(name="manifest", attempt=manifest, seeds=[SNAPSHOT.manifest], weight=60)
    yield Target(
        name="manifest, sealed",
        attempt=body,
        seeds=[msgpack.packb(BODY)],
        documents=[BODY],
        weight=4,
    )
    yield Target(name="snapshot parts, sealed", attempt=parts, seeds=[JOINED], weight=1)
    path = folder / "export"
    write_export(path, Export(SNAPSHOT, PROGRESS))
    yield Target(name="exported model", attempt=files.export, seeds=[path.read_bytes()], weight=2)
    path = folder / "journal"
    journal = Journal(path)
    journal.commit([StoredRecord(journal.reserve(), b"in/0/progress", progress)], NOTES)
    journal.commit([StoredRecord(journal.reserve(), b"in/0/0/manifest", None)], NOTES)
    journal.close()
    yield Target(name="journal", attempt=files.journal, seeds=[path.read_bytes()], weight=2)
    transaction = {"records": [[1, b"key", b"value"], [2, b"key", None]], "end": 3, "notes": NOTES}
    yield Target(
        name="journal, sealed",
        attempt=files.journal_body,
        seeds=[msgpack.packb(transaction)],
        documents=[transaction],
        weight=2,
    )
