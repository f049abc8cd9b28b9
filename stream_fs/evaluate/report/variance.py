"""Where variance, which costs nothing, is as good as anything: data set by data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stream_fs.evaluate.plan import Entry
from stream_fs.evaluate.report.cells import CONTENDERS, EVERYTHING, OURS, VARIANCE, Cells, Contender
from stream_fs.evaluate.report.tables import Table, number, with_error
from stream_fs.evaluate.statistics import Estimate, estimate

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
