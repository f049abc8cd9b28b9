"""The result of a fault: one row of the campaign's table."""

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
class FaultResult:
    """A fault, how often it was injected, and what subscribers received.

    Where a fault has no effect on the output there is nothing to compare, and `shown` is what was
    checked instead.
    """

    fault: str
    times: int
    rankings: Comparison | None = None
    letters: Comparison | None = None
    shown: str = ""
    problems: tuple[str, ...] = ()
    not_run: str = ""
    """Why it could not be injected here; then the result neither passes nor fails."""

    @property
    def compared(self) -> tuple[Comparison, ...]:
        return tuple(found for found in (self.rankings, self.letters) if found is not None)

    @property
    def passed(self) -> bool:
        """Whether the fault was injected, and checks were made and found no problem."""
        checked = bool(self.compared) or bool(self.shown)
        return (
            self.times > 0
            and not self.not_run
            and checked
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
        """Declare the options of its length."""

    def run(self, options: Namespace, /) -> Iterator[FaultResult]:
        """Inject one fault after another, and yield each result."""


class AddArgument(Protocol):
    """`ArgumentParser.add_argument`, as far as parts need it."""

    def __call__(self, name: str, /, *, type: type, default: object, help: str) -> object: ...


def results_of(part: Part, options: Namespace) -> Iterator[FaultResult]:
    """The results of a part; the last one is its error, if it raises one."""
    try:
        yield from part.run(options)
    except Exception as error:  # noqa: BLE001  # the other parts still run
        trace = "".join(format_exception(error))
        yield FaultResult("none: the part failed", 0, shown=repr(error), problems=(trace,))


def table(results: Iterable[tuple[str, FaultResult]]) -> list[str]:
    """The campaign's table, and below it every problem."""
    rows = list(results)
    lines = aligned(TITLES, [result.cells(part) for part, result in rows])
    for part, result in rows:
        lines += [f"{part}, {result.fault}: {problem}" for problem in result.problems]
    return lines
