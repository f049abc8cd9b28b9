"""What the notes of a journal say of the life before this one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from stream_fs.checkpoint.plain import Malformed, field, mapping, whole
from stream_fs.errors import CorruptJournal
from stream_fs.replay.journal import Journal
from stream_fs.replay.reading import Mark


class Earlier(NamedTuple):
    """How a replay was begun, how long its outputs were, and which records were behind it.

    Nothing is known of what never was noted.
    """

    run: Mapping[str, object] | None
    outputs: Mapping[str, int]
    input: Mark | None


def earlier(journal: Journal) -> Earlier:
    """The life before; raises `CorruptJournal` for notes that none of ours has written."""
    notes = journal.notes
    try:
        run, outputs, noted = notes.get("run"), notes.get("outputs"), notes.get("input")
        lengths = {} if outputs is None else mapping(outputs)
        return Earlier(
            None if run is None else mapping(run),
            {topic: whole(lengths, topic) for topic in lengths},
            None if noted is None else _mark(noted),
        )
    except Malformed as error:
        raise CorruptJournal(
            f"{journal.name} does not tell how far its replay was: {error}"
        ) from error


def _mark(noted: object) -> Mark:
    fields = dict(zip(Mark._fields, field({"input": noted}, "input", list), strict=False))
    return Mark(*(whole(fields, name) for name in Mark._fields))
