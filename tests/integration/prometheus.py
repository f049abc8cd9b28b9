"""A Prometheus server of a test's own, which scrapes a service and evaluates the deployed rules."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stream_fs.broker.node import free_ports
from tests.support.processes import wait_until
from tests.support.topics import TIMEOUT_SECONDS

_CONFIGURATION = """
global: {{ scrape_interval: 1s, evaluation_interval: 1s }}
rule_files: [{rules}]
scrape_configs:
  - job_name: stream-fs
    static_configs: [{{ targets: ["{target}"] }}]
"""


class Prometheus:
    """Its answers."""

    def __init__(self, address: str) -> None:
        self._address = address

    def get(self, path: str, **query: str) -> Any:
        """The data of an answer; an answer that is an error fails."""
        url = f"{self._address}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:
            document = json.load(answer)
        assert document["status"] == "success", document
        return document["data"]

    def value(self, expression: str) -> float | None:
        """The only value of an expression; None where there is no series."""
        found = self.get("query", query=expression)["result"]
        return float(found[0]["value"][1]) if found else None

    def rules(self) -> list[dict[str, Any]]:
        return [rule for group in self.get("rules")["groups"] for rule in group["rules"]]

    def up(self) -> bool:
        try:
            return self.value('up{job="stream-fs"}') == 1
        except (urllib.error.URLError, ConnectionError):
            return False


@contextmanager
def running_prometheus(
    program: str, folder: Path, target: str, rules: list[Path]
) -> Iterator[Prometheus]:
    """A server that has scraped the target at least once."""
    (port,) = free_ports(1)
    names = ", ".join(json.dumps(str(path)) for path in rules)
    config = folder / "prometheus.yaml"
    config.write_text(_CONFIGURATION.format(rules=names, target=target), encoding="utf-8")
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / 'prometheus'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        prometheus = Prometheus(f"http://127.0.0.1:{port}")
        wait_until(prometheus.up, f"Prometheus does not see {target}")
        yield prometheus
    finally:
        process.kill()
        process.wait()
