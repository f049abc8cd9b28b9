"""The rules: promtool accepts them, alerts fire as expected, and the series they use exist."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from stream_fs.service.observability.metrics import MetricsObserver
from tests.deploy.expressions import VALUES, mistakes, names
from tests.deploy.files import ALERTS, RECORDED, ROOT, RULE_FILES, RULES, document
from tests.deploy.promtool import promtool
from tests.support.drifting_stream import drifting_process
from tests.support.make_events import merge_events, partition_events
from tests.support.simulated_process import TOPIC

TESTS = sorted((ROOT / "tests/deploy/rules").glob("*.yaml"))


def test_promtool_accepts_the_rules() -> None:
    said = promtool("check", "rules", "--lint=all", "--lint-fatal", *RULE_FILES)
    assert said.count("SUCCESS") == len(RULE_FILES)


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_alerts_fire_as_expected(path: Path) -> None:
    promtool("test", "rules", path)


def test_drift_fires_an_alert_when_all_features_are_published(tmp_path: Path) -> None:
    """All are by default; the series has the value that the service really gives it."""
    registry = CollectorRegistry()
    observe = MetricsObserver(registry, "s", lambda: 0.0)
    _, process = drifting_process()
    for event in process.events:
        observe(event)
    labels = {"stream": "s", "topic": TOPIC, "partition": "0", "view": "wide"}
    name = "stream_fs_top_overlap_ratio"
    overlap = registry.get_sample_value(name, labels)
    firing = {"alertname": "StreamFsRankingUnstable", "alertstate": "firing"}
    alert = series("ALERTS", {**firing, "severity": "warning", **labels})
    case = {
        "interval": "1m",
        "input_series": [{"series": series(name, labels), "values": f"{overlap}x100"}],
        "promql_expr_test": [
            {
                "expr": series("ALERTS", firing),
                "eval_time": "60m",
                "exp_samples": [{"labels": alert, "value": 1}],
            }
        ],
    }
    path = tmp_path / "rules.yaml"
    rules = [str(file) for file in RULE_FILES]
    path.write_text(yaml.safe_dump({"rule_files": rules, "tests": [case]}), encoding="utf-8")
    promtool("test", "rules", path)


def series(name: str, labels: Mapping[str, str]) -> str:
    """As PromQL writes it."""
    words = ", ".join(f'{label}="{value}"' for label, value in labels.items())
    return f"{name}{{{words}}}"


def test_every_alert_is_tested_firing_and_quiet() -> None:
    cases = [
        case
        for path in TESTS
        for test in document(path)["tests"]
        for case in test["alert_rule_test"]
    ]
    firing = {case["alertname"] for case in cases if case.get("exp_alerts")}
    quiet = {case["alertname"] for case in cases if not case.get("exp_alerts")}
    assert firing == ALERTS.keys()
    assert quiet == ALERTS.keys()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.get("alert") or rule["record"])
def test_rules_use_existing_series(rule: dict[str, Any]) -> None:
    assert mistakes(rule["expr"]) == []
    asked = {name for name in names(rule["expr"]) if not name.startswith("stream_fs_")}
    assert asked <= RECORDED | {"up"}


def test_label_values_are_those_of_the_service() -> None:
    registry = CollectorRegistry()
    observe = MetricsObserver(registry, "s", lambda: 0.0)
    for event in (*partition_events(), *merge_events()):
        observe(event)
    given = defaultdict(set)
    for family in registry.collect():
        for sample in family.samples:
            for label in {"outcome", "reason", "phase"} & sample.labels.keys():
                given[sample.name, label].add(sample.labels[label])
    assert given.keys() == VALUES.keys()
    for place, values in given.items():
        # These events have only some of the reasons of bad records.
        assert values <= set(VALUES[place])
        assert place[1] == "reason" or values == set(VALUES[place])


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ('stream_fs_chunks_total{outcome="publish"}', "stream_fs_chunks_total{outcome=publish}"),
        ('stream_fs_chunks_total{outcome=~"replayed|or"}', "stream_fs_chunks_total{outcome=or}"),
        ('stream_fs_chunks_total{outcome=""}', "stream_fs_chunks_total{outcome=}"),
        ('stream_fs_records_total{outcome="running"}', "stream_fs_records_total{outcome=running}"),
        ('stream_fs_records_total{phase="running"}', "stream_fs_records_total{phase}"),
        ('stream_fs_alpha{view="pixels"}', "stream_fs_alpha{view=pixels}"),
        ("stream_fs_alpha_total", "stream_fs_alpha_total"),
    ],
)
def test_unknown_series_are_found(expression: str, wrong: str) -> None:
    assert mistakes(expression) == [wrong]


def test_every_recorded_series_is_used() -> None:
    asked = {name for rule in RULES for name in names(rule["expr"])}
    assert asked >= RECORDED


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_has_a_severity_and_a_runbook_link(name: str) -> None:
    alert = ALERTS[name]
    assert alert["labels"]["severity"] in {"critical", "warning"}
    annotations = alert["annotations"]
    assert annotations["runbook_url"] == f"deploy/runbook.md#{name.lower()}"
    said = re.findall(r"\$labels\.(\w+)", annotations["summary"])
    assert said or "$value" in annotations["summary"]
