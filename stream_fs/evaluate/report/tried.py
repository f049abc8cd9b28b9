"""What was tried and is not in the method, so that nobody has to try it again."""

from __future__ import annotations

from collections.abc import Sequence

from stream_fs.evaluate.experiments.ablation import AS_IT_IS
from stream_fs.evaluate.plan import Row
from stream_fs.evaluate.report.ablation import changes
from stream_fs.evaluate.report.tables import Table, with_error

WORDS = (
    (
        "coding rows by 300 anchors of the first chunk, clusters found late from their "
        "co-occurrence",
        "clusters better (NMI .570 against .517) in a seventh of the time and merges exactly, but "
        "on unseen sets the features it chooses are no better (+.001 ± .002), for six times the "
        "state",
    ),
    (
        "the same anchors, replaced at random as rows come",
        "help a stream that is sorted by class (rank correlation with the labels' score .69 "
        "against .59)",
    ),
    (
        "a reservoir of rows, clustered again and aligned by the Hungarian method",
        "neutral or worse",
    ),
    ("spreading labels over the graph", "neutral or worse"),
    ("more clusters than wanted, merged afterwards", "neutral or worse"),
    ("view weights by agreement between views", "neutral or worse"),
    ("clusters read from a symmetric factorisation", "neutral or worse"),
    ("weighting features anew by the first chunk", "worse: it overfits"),
    ("scores across views, and Laplacian scores", "neutral or worse"),
    ("ensembles over the number of clusters", "neutral or worse"),
)
"""What, and what came of it, on twelve development and ten other sets, with a prototype."""


def tried_tables(ablation: Sequence[Row]) -> list[Table]:
    """What a prototype tried, and variants of the method as it is that do not help."""
    tables = [
        Table(
            "To raise the consensus",
            ["tried", "what came of it"],
            WORDS,
            "The quality of the consensus is what limits the ranking: with the true classes in its "
            "place the same score gives NMI .501 instead of .437. These figures are of a prototype "
            "and are not measured by this run.",
        )
    ]
    return [*tables, variants_table(ablation)] if ablation else tables


def variants_table(ablation: Sequence[Row]) -> Table:
    """Variants of the ablation that do not help by more than their standard errors."""
    found = {name: of for name, of in changes(ablation).items() if name != AS_IT_IS}
    helping = [name for name, of in found.items() if of.claim == "better"]
    body = [
        [
            name,
            with_error(of.over_sets, difference=True),
            "worse" if of.claim == "worse" else "no difference above its standard errors",
        ]
        for name, of in sorted(found.items(), key=lambda item: item[1].mean)
        if name not in helping
    ]
    note = "From the ablation: change of NMI ± standard error over data sets, worst first. "
    if helping:
        note += f"Left out, since by these rows they would help: {', '.join(helping)}."
    else:
        note += "No variant helps by more than its standard errors."
    title = "Variants of preset default that do not help"
    return Table(title, ["variant", "change", "verdict"], body, note)
