"""What the method is meant to reach, and whether it does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stream_fs.evaluate.plan import ROLES, Entry
from stream_fs.evaluate.report.cells import EVERYTHING, RIVALS, VARIANCE, Cells, Difference
from stream_fs.evaluate.report.compared import JUDGES, against, brief
from stream_fs.evaluate.report.tables import Table

LEAST_WINS = 5
LEVEL_FROM = 0.2
ABOVE_FROM = 0.3
MET, BARELY, NOT_MET = "met", "met on average only", "not met"


@dataclass(frozen=True)
class Goal:
    """A goal on the data of a role, what was measured, and whether it is met."""

    role: str
    text: str
    measured: str
    result: str


def find_goals(cells: Cells, entries: Sequence[Entry]) -> list[Goal]:
    """Every goal that the rows tell of, on development data first."""
    found: list[Goal] = []
    for role in ROLES:
        names = [e.name for e in entries if e.role == role and e.name in cells.datasets]
        if names:
            found += _above_rankings(cells, names, role)
            found += _ahead_of_variance(cells, names, role)
            found += _near_everything(cells, names, role)
    return found


def goals_table(goals: Sequence[Goal]) -> Table:
    """The goals, one a row."""
    return Table(
        "Goals, one by one",
        ["goal", "data", "measured", "result"],
        [[goal.text, goal.role, goal.measured, goal.result] for goal in goals],
        "Differences in NMI ± standard error over data sets. “On average only” means that the "
        "difference is not above both standard errors, so nothing is claimed.",
    )


def in_words(goals: Sequence[Goal]) -> Iterator[str]:
    """A sentence or two for the data of every role."""
    for role in dict.fromkeys(goal.role for goal in goals):
        mine = [goal for goal in goals if goal.role == role]
        met = sum(goal.result == MET for goal in mine)
        text = f"{role.capitalize()} data: {met} of {len(mine)} goals are met."
        for result, start in ((BARELY, "On average only"), (NOT_MET, "Not met")):
            which = [f"{goal.text} ({goal.measured})" for goal in mine if goal.result == result]
            text += f" {start}: {'; '.join(which)}." if which else ""
        yield text


def _above_rankings(cells: Cells, names: Sequence[str], role: str) -> Iterator[Goal]:
    for judge in JUDGES:
        rivals = [rival for rival in RIVALS if cells.took(rival, names)]
        by_rival = {rival: against(cells, names, rival, judge) for rival in rivals}
        rival, nearest = min(by_rival.items(), key=lambda item: item[1].mean)
        text = f"above every other ranking method, either budget, {judge}"
        measured = f"nearest is {rival.label}: {brief(nearest)}"
        yield Goal(role, text, measured, _met(nearest.mean > 0, nearest))


def _ahead_of_variance(cells: Cells, names: Sequence[str], role: str) -> Iterator[Goal]:
    need = min(LEAST_WINS, len(names))
    for rival in VARIANCE:
        for judge in ("", *JUDGES):
            of = against(cells, names, rival, judge)
            behind = [name for name, value in of.by_set.items() if value.mean <= 0]
            measured = f"{of.wins}" + (f", not {', '.join(behind)}" if behind else "")
            text = (
                f"ahead of {rival.label} on at least {need} of {len(names)} data sets, "
                f"{judge or 'both judges'}"
            )
            yield Goal(role, text, measured, MET if of.wins >= need else NOT_MET)


def _near_everything(cells: Cells, names: Sequence[str], role: str) -> Iterator[Goal]:
    for share in cells.shares:
        of = against(cells, names, EVERYTHING, "", [share])
        if share >= ABOVE_FROM:
            text = f"above all features with {share:.0%} of them"
            yield Goal(role, text, brief(of), _met(of.mean > 0, of))
        elif share >= LEVEL_FROM:
            level = of.mean > 0 or not of.clear
            text = f"level with all features with {share:.0%} of them"
            yield Goal(role, text, brief(of), MET if level else NOT_MET)


def _met(reached: bool, of: Difference) -> str:
    if not reached:
        return NOT_MET
    return MET if of.clear else BARELY
