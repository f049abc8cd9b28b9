"""The goals of the method, whether they are met, and the comparison with variance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stream_fs.evaluate.plan import ROLES, DataSetEntry
from stream_fs.evaluate.report.main_comparison import JUDGES, against, brief
from stream_fs.evaluate.report.page import Table, number, with_error
from stream_fs.evaluate.report.results import (
    CONTENDERS,
    DEFAULT,
    EVERYTHING,
    RIVALS,
    VARIANCE,
    Contender,
    Estimate,
    PairedDifference,
    PairedResults,
    estimate,
)

RANKINGS = tuple(c for c in CONTENDERS if c != EVERYTHING and c not in VARIANCE)
"""Every ranking but variance."""


@dataclass(frozen=True)
class VarianceComparison:
    """The rankings on a data set less the better of the two variance contenders (NMI, paired)."""

    name: str
    role: str
    variance: Contender
    leads: dict[Contender, Estimate]

    @property
    def default(self) -> Estimate:
        """The lead of `default √`."""
        return self.leads[DEFAULT]

    @property
    def best(self) -> Contender:
        """The ranking with the largest lead."""
        return max(self.leads, key=lambda contender: self.leads[contender].mean)

    @property
    def beaten(self) -> bool:
        """Whether any ranking is clearly ahead of variance."""
        return any(_ahead(lead) for lead in self.leads.values())


def compare_with_variance(
    paired: PairedResults, entries: Sequence[DataSetEntry]
) -> list[VarianceComparison]:
    """One per data set that was measured."""
    comparisons = []
    for entry in entries:
        if entry.name not in paired.datasets:
            continue
        by_contender = {c: paired.values(entry.name, c) for c in (*VARIANCE, *RANKINGS)}
        variance = max(VARIANCE, key=lambda c: float(by_contender[c].mean()))
        leads = {
            c: estimate(by_contender[c] - by_contender[variance])
            for c in RANKINGS
            if paired.has(c, [entry.name])
        }
        comparisons.append(VarianceComparison(entry.name, entry.role, variance, leads))
    return comparisons


def variance_sentence(found: Sequence[VarianceComparison]) -> str:
    """The data sets on which `default` does not clearly beat variance, or no ranking does."""
    once = [item.name for item in found if item.default.count < 2]
    level = [item for item in found if item.default.count > 1 and not _ahead(item.default)]
    which = ", ".join(
        f"{item.name} ({with_error(item.default, difference=True)})" for item in level
    )
    sentences = []
    if level:
        sentences.append(f"default √ is not clearly ahead of variance, better budget, on {which}.")
    elif len(once) < len(found):
        where = "on every data set that was repeated" if once else "on every data set"
        sentences.append(f"default √ is clearly ahead of variance, with either budget, {where}.")
    unbeaten = [item.name for item in level if not item.beaten]
    if unbeaten:
        sentences.append(f"On {', '.join(unbeaten)} no ranking that was measured is.")
    if once:
        sentences.append(f"Measured once, which allows no conclusion: {', '.join(once)}.")
    return " ".join(sentences)


def variance_table(paired: PairedResults, found: Sequence[VarianceComparison]) -> Table:
    """The lead over variance on every data set, and the NMI of all features."""
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
                item.name,
                item.role,
                number(float(paired.values(item.name, EVERYTHING).mean())),
                item.variance.label,
                number(float(paired.values(item.name, item.variance).mean())),
                with_error(item.default, difference=True),
                _verdict(item.default),
                item.best.label,
                with_error(item.leads[item.best], difference=True),
            ]
            for item in found
        ],
        f"{variance_sentence(found)} Paired differences ± standard error over repetitions, means "
        "over judges and shares; “clearly” is by more than that error. The better budget of "
        "variance and the best ranking are chosen by the same figures, which favours both. All "
        "features show how much there is to find.",
    )


def _ahead(lead: Estimate) -> bool:
    return lead.clear and lead.mean > 0


def _verdict(lead: Estimate) -> str:
    if lead.count < 2:
        return "not known"
    if not lead.clear:
        return "level"
    return "ahead" if lead.mean > 0 else "behind"


MIN_WINS = 5
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


def find_goals(paired: PairedResults, entries: Sequence[DataSetEntry]) -> list[Goal]:
    """Every goal that was measured, on development data first."""
    goals: list[Goal] = []
    for role in ROLES:
        names = [e.name for e in entries if e.role == role and e.name in paired.datasets]
        if names:
            goals += _above_rankings(paired, names, role)
            goals += _ahead_of_variance(paired, names, role)
            goals += _near_everything(paired, names, role)
    return goals


def goals_table(goals: Sequence[Goal]) -> Table:
    """One row per goal."""
    return Table(
        "Goals, one by one",
        ["goal", "data", "measured", "result"],
        [[goal.text, goal.role, goal.measured, goal.result] for goal in goals],
        "Differences in NMI ± standard error over data sets. “On average only” means that the "
        "difference does not exceed both standard errors, so that nothing is claimed.",
    )


def goal_sentences(goals: Sequence[Goal]) -> Iterator[str]:
    """The results for the data of every role, one or two sentences each."""
    for role in dict.fromkeys(goal.role for goal in goals):
        of_role = [goal for goal in goals if goal.role == role]
        met = sum(goal.result == MET for goal in of_role)
        text = f"{role.capitalize()} data: {met} of {len(of_role)} goals are met."
        for result, start in ((BARELY, "On average only"), (NOT_MET, "Not met")):
            which = [f"{goal.text} ({goal.measured})" for goal in of_role if goal.result == result]
            text += f" {start}: {'; '.join(which)}." if which else ""
        yield text


def _above_rankings(paired: PairedResults, names: Sequence[str], role: str) -> Iterator[Goal]:
    for judge in JUDGES:
        rivals = [rival for rival in RIVALS if paired.has(rival, names)]
        by_rival = {rival: against(paired, names, rival, judge) for rival in rivals}
        rival, nearest = min(by_rival.items(), key=lambda item: item[1].mean)
        text = f"above every other ranking method, either budget, {judge}"
        measured = f"nearest is {rival.label}: {brief(nearest)}"
        yield Goal(role, text, measured, _met(nearest.mean > 0, nearest))


def _ahead_of_variance(paired: PairedResults, names: Sequence[str], role: str) -> Iterator[Goal]:
    need = min(MIN_WINS, len(names))
    for rival in VARIANCE:
        for judge in ("", *JUDGES):
            lead = against(paired, names, rival, judge)
            behind = [name for name, value in lead.by_dataset.items() if value.mean <= 0]
            measured = f"{lead.wins}" + (f", not {', '.join(behind)}" if behind else "")
            text = (
                f"ahead of {rival.label} on at least {need} of {len(names)} data sets, "
                f"{judge or 'both judges'}"
            )
            yield Goal(role, text, measured, MET if lead.wins >= need else NOT_MET)


def _near_everything(paired: PairedResults, names: Sequence[str], role: str) -> Iterator[Goal]:
    for share in paired.shares:
        lead = against(paired, names, EVERYTHING, "", [share])
        if share >= ABOVE_FROM:
            text = f"above all features with {share:.0%} of them"
            yield Goal(role, text, brief(lead), _met(lead.mean > 0, lead))
        elif share >= LEVEL_FROM:
            level = lead.mean > 0 or not lead.clear
            text = f"level with all features with {share:.0%} of them"
            yield Goal(role, text, brief(lead), MET if level else NOT_MET)


def _met(reached: bool, lead: PairedDifference) -> str:
    if not reached:
        return NOT_MET
    return MET if lead.clear else BARELY
