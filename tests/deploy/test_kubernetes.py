"""The Kubernetes manifests: by the schemas of Kubernetes, and their consistency."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from stream_fs.cli.main import parser
from stream_fs.service.configuration import Configuration, load
from tests.deploy.files import DEPLOY, document, image_variables
from tests.deploy.kustomize import Resource, built

FOLDER = DEPLOY / "kubernetes"
OVERLAYS = sorted(path.parent for path in FOLDER.glob("overlays/*/kustomization.yaml"))
# The oldest version that they are written for, and the newest that is known.
VERSIONS = ("1.30", kubernetes_validate.latest_version())


def by_kubectl(folder: Path) -> list[Resource]:
    said = subprocess.run(
        ["kubectl", "kustomize", folder], capture_output=True, text=True, check=True
    )
    hashed = re.compile(r"(?<=name: stream-fs)-[0-9a-z]{10}$", re.MULTILINE)
    return list(yaml.safe_load_all(hashed.sub("", said.stdout)))


# Where there is a kubectl, it must build the same.
BUILDERS = [built, *([by_kubectl] if shutil.which("kubectl") else [])]


@pytest.fixture(params=[FOLDER / "base", *OVERLAYS], ids=lambda folder: folder.name)
def resources(request: pytest.FixtureRequest) -> dict[str, Resource]:
    return {resource["kind"]: resource for resource in built(request.param)}


@pytest.fixture
def pod(resources: dict[str, Resource]) -> Resource:
    return pod_of(resources["Deployment"])


def pod_of(resource: Resource) -> Resource:
    spec = resource["spec"]["template"]["spec"]
    assert isinstance(spec, dict)
    return spec


def container_of(pod: Resource) -> Resource:
    (container,) = pod["containers"]
    assert isinstance(container, dict)
    return container


def topics_of(pod: Resource) -> Resource:
    (container,) = pod["initContainers"]
    assert isinstance(container, dict)
    return container


def configuration(resources: dict[str, Resource], folder: Path) -> Configuration:
    """The configuration as the container would read it."""
    path = folder / "config.toml"
    path.write_text(resources["ConfigMap"]["data"]["config.toml"], encoding="utf-8")
    container = container_of(pod_of(resources["Deployment"]))
    return load(path, {variable["name"]: variable["name"].lower() for variable in container["env"]})


@pytest.mark.parametrize("version", VERSIONS)
def test_every_resource_matches_its_schema(resources: dict[str, Resource], version: str) -> None:
    for kind, resource in resources.items():
        if kind != "PodMonitor":  # of the Prometheus operator, whose schema is not at hand
            kubernetes_validate.validate(resource, version, strict=True)


@pytest.mark.parametrize("builder", BUILDERS, ids=lambda builder: builder.__name__)
@pytest.mark.parametrize("folder", OVERLAYS, ids=lambda folder: folder.name)
def test_an_overlay_builds(folder: Path, builder: Any) -> None:
    def sorted_by_name(resources: list[Resource]) -> list[Resource]:
        return sorted(resources, key=lambda r: (r["kind"], r["metadata"]["name"]))

    assert sorted_by_name(builder(folder)) == sorted_by_name(built(folder))


def test_there_is_an_overlay_with_three_replicas() -> None:
    found = {resource["kind"]: resource for resource in built(FOLDER / "overlays/three-replicas")}
    replicas = found["Deployment"]["spec"]["replicas"]
    assert replicas == 3
    # A process without a partition has nothing to do.
    create = parser().parse_args(topics_of(pod_of(found["Deployment"]))["args"])
    assert create.partitions >= replicas


def test_the_budget_and_the_monitor_select_the_pods(resources: dict[str, Resource]) -> None:
    labels = resources["Deployment"]["spec"]["template"]["metadata"]["labels"]
    for kind in ("Deployment", "PodDisruptionBudget", "PodMonitor"):
        assert resources[kind]["spec"]["selector"] == {"matchLabels": labels}
    monitor = resources["PodMonitor"]["spec"]
    # The rules look for this job.
    assert labels[monitor["jobLabel"]] == "stream-fs"


def test_everything_can_be_applied_again_with_another_image(resources: dict[str, Resource]) -> None:
    """The template of a pod can be changed in these kinds; that of a Job cannot."""
    templates = {
        kind for kind, resource in resources.items() if "template" in resource.get("spec", {})
    }
    assert templates == {"Deployment"}


def test_an_overlay_names_the_image_by_its_digest() -> None:
    plan = document(FOLDER / "overlays/three-replicas/kustomization.yaml")
    (image,) = plan["images"]
    assert image["name"] == "stream-fs"
    # A placeholder, which no registry has.
    assert image["digest"] == "sha256:" + 64 * "0"
    found = {resource["kind"]: resource for resource in built(FOLDER / "overlays/three-replicas")}
    pod = pod_of(found["Deployment"])
    used = {container["image"] for container in (container_of(pod), topics_of(pod))}
    assert used == {f"{image['newName']}@{image['digest']}"}


def test_the_network_policy_allows_the_needed_connections_only(tmp_path: Path) -> None:
    found = {resource["kind"]: resource for resource in built(FOLDER / "overlays/three-replicas")}
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    policy = found["NetworkPolicy"]["spec"]
    assert policy["podSelector"] == {"matchLabels": labels}
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    (port,) = container_of(pod_of(found["Deployment"]))["ports"]
    assert policy["ingress"] == [{"ports": [tcp(port["containerPort"])]}]
    brokers = configuration(found, tmp_path).kafka.bootstrap.split(",")
    dns = [{"port": 53, "protocol": protocol} for protocol in ("UDP", "TCP")]
    kafka = [tcp(int(port)) for port in sorted({broker.rpartition(":")[2] for broker in brokers})]
    assert policy["egress"] == [{"ports": dns}, {"ports": kafka}]


def tcp(port: int) -> Resource:
    return {"port": port, "protocol": "TCP"}


def test_every_probed_port_is_open(resources: dict[str, Resource], pod: Resource) -> None:
    container = container_of(pod)
    (port,) = container["ports"]
    assert str(port["containerPort"]) == image_variables()["STREAM_FS_SERVICE__PORT"]
    (endpoint,) = resources["PodMonitor"]["spec"]["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["path"]) == (port["name"], "/metrics")
    probes = {
        kind: container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")
    }
    assert {probe["port"] for probe in probes.values()} == {port["name"]}
    assert {kind: probe["path"] for kind, probe in probes.items()} == {
        "startup": "/healthz",
        "liveness": "/healthz",
        "readiness": "/readyz",
    }


def test_the_configuration_is_valid(
    resources: dict[str, Resource], pod: Resource, tmp_path: Path
) -> None:
    loaded = configuration(resources, tmp_path)
    assert loaded.kafka_settings().properties["sasl.username"] == "kafka_username"
    assert loaded.secrets() == {"kafka_password"}
    container = container_of(pod)
    (mount,) = container["volumeMounts"]
    folder = Path(mount["mountPath"])
    assert str(folder / "config.toml") == image_variables()["STREAM_FS_CONFIG"]
    (volume,) = pod["volumes"]
    config, secret = volume["projected"]["sources"]
    assert config["configMap"]["name"] == resources["ConfigMap"]["metadata"]["name"]
    (item,) = secret["secret"]["items"]
    assert loaded.kafka.properties["ssl.ca.location"] == str(folder / item["path"])


def test_secrets_are_referenced_and_not_inlined(pod: Resource) -> None:
    for variable in container_of(pod)["env"]:
        assert variable.keys() == {"name", "valueFrom"}
        assert variable["valueFrom"]["secretKeyRef"]["name"] == "stream-fs-kafka"


def test_a_graceful_shutdown_has_enough_time(
    resources: dict[str, Resource], pod: Resource, tmp_path: Path
) -> None:
    grace = configuration(resources, tmp_path).service.grace_seconds
    assert pod["terminationGracePeriodSeconds"] > grace


def test_a_new_process_starts_before_an_old_one_stops(resources: dict[str, Resource]) -> None:
    roll_out = resources["Deployment"]["spec"]["strategy"]["rollingUpdate"]
    assert roll_out == {"maxSurge": 1, "maxUnavailable": 0}


def test_processes_have_the_least_privileges(resources: dict[str, Resource]) -> None:
    pod = pod_of(resources["Deployment"])
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in (*pod.get("initContainers", ()), container_of(pod)):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"].keys() == {"requests", "limits"}


def test_topics_are_created_first_with_the_same_configuration() -> None:
    found = {resource["kind"]: resource for resource in built(FOLDER / "overlays/three-replicas")}
    pod = pod_of(found["Deployment"])
    service, topics = container_of(pod), topics_of(pod)
    for key in ("image", "env", "volumeMounts"):
        assert topics[key] == service[key]
