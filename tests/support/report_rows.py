"""Rows of experiments whose figures are known, for tests of the report."""

from collections.abc import Mapping, Sequence

from stream_fs.evaluate.methods.registry import ALL_FEATURES, BUDGETS, METHODS
from stream_fs.evaluate.plan import DataSetEntry, Row

SETS = ("3Sources", "USPS")


ENTRIES = [DataSetEntry(name, "development", 100, (3, 4), 2, "abc") for name in SETS]


SHARES = (0.1, 0.3)


def ranking_rows(repetitions: int = 2, skipped: Sequence[str] = ()) -> list[Row]:
    """Rows in which `default √` has 0.5, variance 0.1 less on 3Sources and 0.3 less on USPS."""
    rows: list[Row] = []
    for name in SETS:
        for repetition in range(repetitions):
            for method in METHODS:
                if method in skipped and repetition:
                    continue
                for budget in BUDGETS:
                    for share in (1.0,) if method == ALL_FEATURES else SHARES:
                        for judge in ("gimc scaled", "spectral raw"):
                            nmi = 0.5 + 0.02 * repetition
                            if method == "variance":
                                nmi -= 0.1 if name == "3Sources" else 0.3
                                nmi -= 0.04 * repetition
                            elif method == ALL_FEATURES:
                                nmi += 0.05
                            row: Row = {"dataset": name, "repetition": repetition}
                            row |= {"method": method, "budget": budget, "share": share}
                            row |= {"judge": judge, "nmi": nmi, "ari": 0.1, "f": 0.2}
                            rows.append(row)
    return rows


def nmi_rows(column: str, values: Mapping[str, Mapping[str, Sequence[float]]]) -> list[Row]:
    """Value of the column → data set → NMI by repetition."""
    return [
        {"dataset": dataset, "repetition": repetition, column: value, "nmi": nmi}
        for value, of in values.items()
        for dataset, found in of.items()
        for repetition, nmi in enumerate(found)
    ]


ABLATION = nmi_rows(
    "variant",
    {
        "as it is": {"a": (0.5, 0.5), "b": (0.3, 0.3)},
        "no graph": {"a": (0.4, 0.4), "b": (0.2, 0.2)},
        "unit rows": {"a": (0.6, 0.6), "b": (0.2, 0.2)},
        "decay 0.9": {"a": (0.6, 0.6), "b": (0.4, 0.4)},
    },
)


def merging_rows(dataset: str, most: int) -> list[Row]:
    return [
        {
            "dataset": dataset,
            "repetition": repetition,
            "cut": "even",
            "partitions": partitions,
            "rows": 1000 // partitions,
            "method": method,
            "overlap": overlap,
            "nmi": 0.5 + 0.1 * repetition - lost * (1 + repetition),
        }
        for repetition in range(2)
        for partitions, method, overlap, lost in [
            (1, "single", 1.0, 0.0),
            (2, "merged", 0.8, 0.02),
            (4, "merged", 0.6, 0.04),
        ]
        if partitions <= most
    ]
