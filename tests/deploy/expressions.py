"""The series that an expression uses, and the series that exist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import get_args, get_type_hints

import promql_parser

from stream_fs.pipeline import events
from stream_fs.pipeline.events.instruments import INSTRUMENTS, Histogram
from stream_fs.records import Reason

TARGET = frozenset({"job", "instance", "namespace"})
"""Labels that Prometheus adds to everything that it scrapes."""


def _outcomes(event: type) -> tuple[str, ...]:
    return get_args(get_type_hints(event)["outcome"])


VALUES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("stream_fs_records_total", "outcome"): ("good", "bad"),
    ("stream_fs_bad_records_total", "reason"): get_args(Reason),
    ("stream_fs_dead_letters_total", "reason"): get_args(Reason),
    ("stream_fs_chunks_total", "outcome"): ("published", "replayed"),
    ("stream_fs_transaction_failures_total", "outcome"): (
        *_outcomes(events.TransactionFailed),
        "fenced",
        "undecided",
    ),
    ("stream_fs_task_phase", "phase"): get_args(events.Phase),
    ("stream_fs_restores_total", "outcome"): ("new", "restored", "fallback"),
    ("stream_fs_merge_skips_total", "reason"): get_args(events.SkipReason),
    ("stream_fs_merge_failures_total", "outcome"): _outcomes(events.MergeFailed),
}
"""Of the labels that have a few values, these; others depend on the stream."""


@dataclass(frozen=True)
class Declared:
    """A metric as the service declares it."""

    labels: frozenset[str]


@cache
def declared() -> Mapping[str, Declared]:
    """The metrics of the service, by the name of their series (of a histogram, its buckets)."""
    found = {
        "stream_fs_build_info": Declared(TARGET | {"version", "python"}),
        "stream_fs_ready": Declared(TARGET | {"stream"}),
    }
    for instrument in INSTRUMENTS:
        labels = TARGET | {*instrument.scope, *instrument.labels}
        if isinstance(instrument, Histogram):
            found[f"{instrument.name}_bucket"] = Declared(labels | {"le"})
        else:
            found[instrument.name] = Declared(labels)
    return found


def nodes(expression: str) -> list[promql_parser.Expr]:
    """An expression and all its parts."""
    found: list[promql_parser.Expr] = []
    promql_parser.walk(promql_parser.parse(expression), found.append)
    return found


def selectors(expression: str) -> list[promql_parser.VectorSelector]:
    """Every selector in an expression."""
    return [node for node in nodes(expression) if isinstance(node, promql_parser.VectorSelector)]


def names(expression: str) -> set[str]:
    """The series that an expression asks for."""
    return {str(selector.name) for selector in selectors(expression)}


def grouped(expression: str) -> list[str]:
    """The labels that an expression aggregates by."""
    aggregates = [n for n in nodes(expression) if isinstance(n, promql_parser.AggregateExpr)]
    return [label for n in aggregates if n.modifier for label in n.modifier.labels]


def mistakes(expression: str) -> list[str]:
    """Metrics, labels and values of labels in an expression that the service does not have."""
    every = frozenset().union(*(metric.labels for metric in declared().values()))
    found = [label for label in grouped(expression) if label not in every]
    for selector in selectors(expression):
        name = str(selector.name)
        if not name.startswith("stream_fs_"):
            continue
        if name not in declared():
            found.append(name)
            continue
        metric = declared()[name]
        for matcher in selector.matchers.matchers:
            if matcher.name not in metric.labels:
                found.append(f"{name}{{{matcher.name}}}")
            elif matcher.name not in TARGET and "$" not in matcher.value:
                known = VALUES.get((name, matcher.name), ())
                found += [
                    f"{name}{{{matcher.name}={value}}}"
                    for value in matcher.value.split("|")
                    if value not in known
                ]
    return found
