"""What a reader found in some records, by view, before anything is put in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from stream_fs.records import Reason
from stream_fs.selector.arrays import Indices, Working
from stream_fs.wire.documents import Row
from stream_fs.wire.refusal import Refused

Fault: TypeAlias = tuple[Reason, str]
"""Why a record cannot be used: the reason, and the particulars."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows (k × d) of one view, and the records that they belong to (k), increasing."""

    at: Indices
    rows: Working


@dataclass(slots=True)
class Found:
    """Rows that were found together, rows of single records, and records that were refused.

    Records are named by their number among those that were read.
    """

    together: dict[str, list[Rows]]
    single: dict[str, list[tuple[int, Row]]]
    refused: dict[int, Fault] = field(default_factory=dict)

    @classmethod
    def nothing(cls, names: Iterable[str]) -> Found:
        """A place to collect in."""
        names = tuple(names)
        return cls({name: [] for name in names}, {name: [] for name in names})

    def add(self, record: int, rows: dict[str, Row]) -> None:
        """The views of a single record."""
        for name, row in rows.items():
            self.single[name].append((record, row))

    def refuse(self, record: int, refused: Refused) -> None:
        """A record that cannot be used."""
        self.refused[record] = (refused.reason, refused.detail)
