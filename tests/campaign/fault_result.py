"""What became of a fault: one row of the campaign's table."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from traceback import format_exception
from typing import Protocol

from tests.support.markdown_table import aligned
from tests.support.recovery.comparison import Comparison

TITLES = (
    "part", "fault", "times", "rankings", "dead letters", "differing bytes", "lost",
    "duplicated", "misplaced", "also shown", "problems",
)  # fmt: skip


@dataclass(frozen=True)
class Account:
    """A fault, how often it was injected, and what subscribers received in spite of it.

    Where a fault must not reach the subscribers' side at all there is nothing to compare, and
    `shown` says what was looked at instead.
    """

    fault: str
    times: int
    rankings: Comparison | None = None
    letters: Comparison | None = None
    shown: str = ""
    problems: tuple[str, ...] = ()
    not_run: str = ""
    """Why it could not be injected here; that is neither right nor wrong."""

    @property
    def compared(self) -> tuple[Comparison, ...]:
        return tuple(found for found in (self.rankings, self.letters) if found is not None)

    @property
    def right(self) -> bool:
        """Whether the fault was injected, nothing went wrong, and something was looked at."""
        looked = bool(self.compared) or bool(self.shown)
        return (
            self.times > 0
            and not self.not_run
            and looked
            and all(found.same for found in self.compared)
            and not self.problems
        )

    def cells(self, part: str) -> list[str]:
        counts = ["–"] * 4
        if self.compared:
            both = sum(self.compared[1:], self.compared[0])
            numbers = (both.differing_bytes, both.lost, both.duplicated, both.misplaced)
            counts = [str(number) for number in numbers]
        rankings, letters = (
            "–" if found is None else str(found.compared) for found in (self.rankings, self.letters)
        )
        named = [part, self.fault, str(self.times), rankings, letters]
        shown = f"not run: {self.not_run}" if self.not_run else self.shown
        return [*named, *counts, shown, str(len(self.problems))]


class Part(Protocol):
    """A module of the campaign."""

    def arguments(self, add: AddArgument, /) -> None:
        """Declare the options that say how long it takes."""

    def run(self, options: Namespace, /) -> Iterator[Account]:
        """Inject one fault after another; each account comes when it is known."""


class AddArgument(Protocol):
    """`ArgumentParser.add_argument`, as far as parts need it."""

    def __call__(self, name: str, /, *, type: type, default: object, help: str) -> object: ...


def accounts_of(part: Part, options: Namespace) -> Iterator[Account]:
    """All that a part has to tell; where it breaks off, that is the last of it."""
    try:
        yield from part.run(options)
    except Exception as error:  # noqa: BLE001  # the other parts have their turn
        told = "".join(format_exception(error))
        yield Account("none: the part broke off", 0, shown=repr(error), problems=(told,))


def table(accounts: Iterable[tuple[str, Account]]) -> list[str]:
    """The campaign's table, and below it every problem."""
    told = list(accounts)
    lines = aligned(TITLES, [account.cells(part) for part, account in told])
    for part, account in told:
        lines += [f"{part}, {account.fault}: {problem}" for problem in account.problems]
    return lines
