"""The checkpoint of a replay as a file: only complete transactions count."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from stream_fs.errors import CannotWrite, CorruptJournal, NoOwnership
from stream_fs.pipeline.ports import StoredRecord
from stream_fs.replay import journal as module
from stream_fs.replay.journal import MAGIC, Journal


def commit(journal: Journal, *values: bytes | None, key: bytes = b"key", **notes: int) -> None:
    journal.commit([StoredRecord(journal.reserve(), key, value) for value in values], notes)


def values(journal: Journal) -> list[bytes | None]:
    return [record.value for record in journal.records]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "journal"
    journal = Journal(path)
    commit(journal, b"a", None, first=1, last=1)
    journal.reserve()  # of an aborted transaction
    commit(journal, b"b", last=2)
    journal.close()
    return path


def opened(path: Path) -> Journal:
    journal = Journal(path)
    journal.close()
    return journal


def test_committed_records_are_restored(path: Path) -> None:
    for journal in (opened(path), Journal(path, writing=False)):
        assert values(journal) == [b"a", None, b"b"]
        assert [record.offset for record in journal.records] == [0, 1, 3]
        assert (journal.end, journal.notes) == (4, {"first": 1, "last": 2})


def test_an_incomplete_transaction_is_truncated(path: Path) -> None:
    whole = path.read_bytes()
    seen = set()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        journal = Journal(path)
        found = values(journal)
        assert found in ([], [b"a", None])
        assert journal.notes.get("last") == (1 if found else None)
        commit(journal, b"new")
        journal.close()
        assert values(opened(path)) == [*found, b"new"]
        seen.add(len(found))
    assert seen == {0, 2}


def test_transactions_before_damage_are_kept(path: Path) -> None:
    whole = path.read_bytes()
    for place in range(len(MAGIC), len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert values(opened(path)) in ([], [b"a", None])


def test_a_length_beyond_the_file_is_ignored(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\xff\xff\xff\xff\0\0\0\0more")
    assert values(opened(path)) == [b"a", None, b"b"]


@pytest.mark.parametrize("content", [b"something else", b"x", b"PK\3\4"])
def test_another_file_is_refused_and_not_changed(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(CorruptJournal, match="is not a checkpoint of a replay"):
        Journal(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("body", [b"\x80", b"\x01", b"\xc1"])
def test_a_transaction_of_another_release_is_refused(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "journal"
    path.write_bytes(MAGIC + module._frame(body))
    with pytest.raises(CorruptJournal, match="cannot be continued from"):
        Journal(path)


def test_a_second_process_is_refused(path: Path) -> None:
    journal = Journal(path)
    with pytest.raises(NoOwnership, match="another process uses"):
        Journal(path)
    assert values(Journal(path, writing=False)) == [b"a", None, b"b"]  # reading is allowed
    journal.close()
    opened(path)


def test_a_file_that_was_replaced_before_it_is_locked_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.open

    def replaced(name: Path, flags: int, mode: int = 0o777) -> int:
        descriptor = before(name, flags, mode)
        path.with_name("new").write_bytes(path.read_bytes())
        path.with_name("new").replace(path)
        return descriptor

    monkeypatch.setattr(os, "open", replaced)
    with pytest.raises(NoOwnership):
        Journal(path)


def test_replaced_records_are_dropped_and_offsets_stay(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_REPLACED_BYTES", 1000)
    journal = Journal(path)
    for number in range(200):
        commit(journal, b"%d" % number * 30, key=b"%d" % (number % 2), last=number)
        with pytest.raises(NoOwnership):
            Journal(path)  # also after the file is rewritten
    commit(journal, b"end", last=200)
    journal.close()
    assert path.stat().st_size < 5000
    again = opened(path)
    assert again.records[-3:] == journal.records[-3:]
    newest = {record.key: record.value for record in again.records}
    assert newest == {b"key": b"end", b"0": b"198" * 30, b"1": b"199" * 30}
    assert (again.end, again.notes) == (205, {"first": 1, "last": 200})
    assert list(path.parent.iterdir()) == [path]


def test_without_a_path_there_is_no_file() -> None:
    journal = Journal(None)
    commit(journal, b"a", last=1)
    assert values(journal) == [b"a"]
    journal.close()


@pytest.mark.parametrize("spare", [module.MAX_REPLACED_BYTES, 0], ids=["appending", "rewriting"])
def test_a_full_disk_leaves_the_earlier_transactions(
    path: Path, monkeypatch: pytest.MonkeyPatch, spare: int
) -> None:
    journal = Journal(path)
    monkeypatch.setattr(module, "MAX_REPLACED_BYTES", spare)
    calls = 0

    def full(_: object) -> None:
        nonlocal calls
        calls += 1
        if calls > (0 if spare else 1):  # rewriting: the append before it succeeds
            raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(module, "_synchronise", full)
    with pytest.raises(CannotWrite, match="journal cannot be written: no space left"):
        commit(journal, b"new", key=b"other")
    journal.close()
    monkeypatch.undo()
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert values(opened(path))[:3] == [b"a", None, b"b"]
