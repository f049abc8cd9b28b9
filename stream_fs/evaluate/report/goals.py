"""What the method is meant to reach, and whether it does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stream_fs.evaluate.plan import ROLES, Entry
from stream_fs.evaluate.report.main_comparison import JUDGES, against, brief
from stream_fs.evaluate.report.page import Table, number, with_error
from stream_fs.evaluate.report.results import (
    CONTENDERS,
    EVERYTHING,
    OURS,
    RIVALS,
    VARIANCE,
    Cells,
    Contender,
    Difference,
    Estimate,
    estimate,
)

RANKINGS = tuple(c for c in CONTENDERS if c != EVERYTHING and c not in VARIANCE)
"""Every ranking but variance."""


@dataclass(frozen=True)
class BesideVariance:
    """A data set's rankings less the better of the two variance contenders (NMI, paired)."""

    name: str
    role: str
    variance: Contender
    leads: dict[Contender, Estimate]

    @property
    def ours(self) -> Estimate:
        """How far `default √` is ahead."""
        return self.leads[OURS]

    @property
    def best(self) -> Contender:
        """The ranking that is furthest ahead."""
        return max(self.leads, key=lambda contender: self.leads[contender].mean)

    @property
    def beaten(self) -> bool:
        """Whether any ranking is clearly ahead of variance."""
        return any(_ahead(lead) for lead in self.leads.values())


def beside_variance(cells: Cells, entries: Sequence[Entry]) -> list[BesideVariance]:
    """Every data set that was measured."""
    found = []
    for entry in entries:
        if entry.name not in cells.datasets:
            continue
        by_contender = {c: cells.values(entry.name, c) for c in (*VARIANCE, *RANKINGS)}
        variance = max(VARIANCE, key=lambda c: float(by_contender[c].mean()))
        leads = {
            c: estimate(by_contender[c] - by_contender[variance])
            for c in RANKINGS
            if cells.took(c, [entry.name])
        }
        found.append(BesideVariance(entry.name, entry.role, variance, leads))
    return found


def variance_in_words(found: Sequence[BesideVariance]) -> str:
    """Where `default` does not clearly beat variance, and where nothing does."""
    once = [of.name for of in found if of.ours.count < 2]
    level = [of for of in found if of.ours.count > 1 and not _ahead(of.ours)]
    which = ", ".join(f"{of.name} ({with_error(of.ours, difference=True)})" for of in level)
    sentences = []
    if level:
        sentences.append(f"default √ is not clearly ahead of variance, better budget, on {which}.")
    elif len(once) < len(found):
        where = "on every data set that was repeated" if once else "on every data set"
        sentences.append(f"default √ is clearly ahead of variance, with either budget, {where}.")
    unbeaten = [of.name for of in level if not of.beaten]
    if unbeaten:
        sentences.append(f"On {', '.join(unbeaten)} no ranking that was measured is.")
    if once:
        sentences.append(f"Measured once, so that nothing can be said: {', '.join(once)}.")
    return " ".join(sentences)


def variance_table(cells: Cells, found: Sequence[BesideVariance]) -> Table:
    """Every data set with the lead over variance, and what all features give."""
    return Table(
        "Where variance is as good (NMI)",
        [
            "data set",
            "data",
            "all features",
            "better variance",
            "its NMI",
            "default √ less it",
            "default √ is",
            "best ranking",
            "best less variance",
        ],
        [
            [
                of.name,
                of.role,
                number(float(cells.values(of.name, EVERYTHING).mean())),
                of.variance.label,
                number(float(cells.values(of.name, of.variance).mean())),
                with_error(of.ours, difference=True),
                _verdict(of.ours),
                of.best.label,
                with_error(of.leads[of.best], difference=True),
            ]
            for of in found
        ],
        f"{variance_in_words(found)} Paired differences ± standard error over repetitions, means "
        "over judges and shares; “clearly” is by more than that error. The better budget of "
        "variance and the best ranking are chosen by the same figures, which flatters both. All "
        "features tell how much there is to find.",
    )


def _ahead(lead: Estimate) -> bool:
    return lead.clear and lead.mean > 0


def _verdict(lead: Estimate) -> str:
    if lead.count < 2:
        return "not known"
    if not lead.clear:
        return "level"
    return "ahead" if lead.mean > 0 else "behind"


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
