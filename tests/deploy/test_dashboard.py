"""The dashboard shows every metric, and no other."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.expressions import declared, mistakes, names
from tests.deploy.files import DEPLOY
from tests.deploy.promtool import promtool

DASHBOARD = json.loads((DEPLOY / "grafana/dashboard.json").read_text(encoding="utf-8"))
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
SHOWING = [panel for panel in PANELS if panel["type"] != "row"]
INTERVAL = "$__rate_interval"
EXPRESSIONS = [
    target["expr"].replace(INTERVAL, "5m") for panel in SHOWING for target in panel["targets"]
]
VARIABLES = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_it_asks_for_what_there_is(expression: str) -> None:
    assert mistakes(expression) == []


def test_the_dashboard_shows_every_metric_and_no_other() -> None:
    shown = {name for expression in EXPRESSIONS for name in names(expression)}
    assert shown == declared().keys()


def test_promtool_accepts_every_expression(tmp_path: Path) -> None:
    rules = [{"record": f"panel:{n}", "expr": expr} for n, expr in enumerate(EXPRESSIONS)]
    path = tmp_path / "panels.json"  # JSON is YAML, too
    path.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    assert f"{len(EXPRESSIONS)} rules found" in promtool("check", "rules", path)


def test_variables_use_existing_labels() -> None:
    assert VARIABLES.keys() == {"datasource", "stream", "topic", "partition"}
    for name in VARIABLES.keys() - {"datasource"}:
        query = VARIABLES[name]["query"]["query"]
        selector, label = query.removeprefix("label_values(").removesuffix(")").rsplit(", ", 1)
        assert label == name
        assert mistakes(selector) == []


def test_every_panel_uses_the_variables() -> None:
    for panel in SHOWING:
        assert panel["datasource"]["uid"] == "${datasource}"
        for target in panel["targets"]:
            # The merge is of all partitions, and readiness that of a process.
            found = names(target["expr"].replace(INTERVAL, "5m"))
            whole = any("merge" in name or name == "stream_fs_ready" for name in found)
            wanted = {"$stream"} if whole else {"$stream", "$topic", "$partition"}
            assert "build_info" in target["expr"] or all(w in target["expr"] for w in wanted)


def test_every_panel_has_a_description_and_a_position() -> None:
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    assert [panel["title"] for panel in SHOWING if not panel["description"]] == []
    for one, other in itertools.combinations((panel["gridPos"] for panel in PANELS), 2):
        apart = (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
        assert apart, (one, other)
    assert all(place["x"] + place["w"] <= 24 for place in (p["gridPos"] for p in PANELS))
