"""The compose file: by its schema, and together with the files that it mounts."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stream_fs.cli.main import parser
from stream_fs.service.configuration import load
from tests.deploy.files import DEPLOY, PINNED, document, image_variables
from tests.deploy.promtool import promtool

FOLDER = DEPLOY / "compose"
COMPOSE = document(FOLDER / "compose.yaml")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]


def target(service: str, source: str) -> str:
    """Where in a service a file is mounted."""
    (found,) = [c["target"] for c in SERVICES[service]["configs"] if c["source"] == source]
    assert isinstance(found, str)
    return found


def test_the_compose_file_matches_its_schema() -> None:
    validator = Path(sys.executable).with_name("check-jsonschema")
    said = subprocess.run(
        [validator, "--builtin-schema", "vendor.compose-spec", FOLDER / "compose.yaml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stdout


def test_every_image_that_is_not_built_here_is_pinned() -> None:
    fetched = [service["image"] for service in SERVICES.values() if "build" not in service]
    assert len(fetched) == 3
    assert [image for image in fetched if not PINNED.fullmatch(image)] == []


def test_every_mounted_file_exists_and_is_mounted() -> None:
    declared = {name: FOLDER / config["file"] for name, config in COMPOSE["configs"].items()}
    assert [path for path in declared.values() if not path.is_file()] == []
    used = {c["source"] for service in SERVICES.values() for c in service.get("configs", ())}
    assert used == declared.keys()


def test_the_compose_file_builds_the_image() -> None:
    build = SERVICES["stream-fs"]["build"]
    assert (FOLDER / build["context"] / build["dockerfile"]).resolve() == DEPLOY / (
        "docker/Dockerfile"
    )


def test_the_configuration_is_valid() -> None:
    loaded = load(FOLDER / "config.toml", {})
    listeners = SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert f"INSIDE://{loaded.kafka.bootstrap}" in listeners.split(",")
    assert target("stream-fs", "stream-fs") == image_variables()["STREAM_FS_CONFIG"]


def test_the_topics_are_made_before_the_service_starts() -> None:
    words = SERVICES["topics"]["command"]
    made = parser().parse_args(words)
    assert (made.partitions, made.replication) == (3, 1)
    waits = SERVICES["stream-fs"]["depends_on"]
    assert waits == {"topics": {"condition": "service_completed_successfully"}}


def test_a_graceful_shutdown_has_enough_time() -> None:
    grace = load(FOLDER / "config.toml", {}).service.grace_seconds
    assert float(SERVICES["stream-fs"]["stop_grace_period"].removesuffix("s")) > grace


@pytest.mark.parametrize("service", ["topics", "stream-fs"])
def test_processes_have_the_least_privileges(service: str) -> None:
    ours = SERVICES[service]
    assert ours["read_only"] is True
    assert ours["cap_drop"] == ["ALL"]
    assert ours["security_opt"] == ["no-new-privileges:true"]


def test_ports_are_bound_to_localhost() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_status_page_of_every_process_can_be_reached() -> None:
    (port,) = SERVICES["stream-fs"]["ports"]
    host, outside, inside = port.split(":")
    first, last = map(int, outside.split("-"))
    assert (host, inside) == ("127.0.0.1", image_variables()["STREAM_FS_SERVICE__PORT"])
    assert first == int(inside)
    partitions = parser().parse_args(SERVICES["topics"]["command"]).partitions
    assert last - first + 1 == partitions


def test_promtool_accepts_the_configuration_and_the_rules(tmp_path: Path) -> None:
    inside = Path("/etc/prometheus")
    for source in ("prometheus", "recording", "alerts"):
        place = tmp_path / Path(target("prometheus", source)).relative_to(inside)
        place.parent.mkdir(exist_ok=True)
        shutil.copy(FOLDER / COMPOSE["configs"][source]["file"], place)
    said = promtool("check", "config", tmp_path / "prometheus.yml")
    assert "2 rule files found" in said


def test_prometheus_scrapes_the_processes() -> None:
    (job,) = document(FOLDER / "prometheus.yaml")["scrape_configs"]
    assert job["job_name"] == "stream-fs"
    (lookup,) = job["dns_sd_configs"]
    assert set(lookup["names"]) <= SERVICES.keys()
    assert str(lookup["port"]) == image_variables()["STREAM_FS_SERVICE__PORT"]


def test_grafana_finds_the_dashboard_and_the_data() -> None:
    (source,) = document(FOLDER / "grafana/data-source.yaml")["datasources"]
    host, port = source["url"].removeprefix("http://").split(":")
    assert f"127.0.0.1:{port}:{port}" in SERVICES[host]["ports"]
    (provider,) = document(FOLDER / "grafana/dashboards.yaml")["providers"]
    dashboard = Path(target("grafana", "dashboard"))
    assert dashboard.parent == Path(provider["options"]["path"])
    home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home == str(dashboard)
