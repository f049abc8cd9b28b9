"""As much of kustomize as the manifests use; a field that is not known here is an error.

Names of generated ConfigMaps keep no hash.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.deploy.files import document, documents

Resource = dict[str, Any]
FIELDS = {
    *("apiVersion", "kind", "resources", "components"),
    *("configMapGenerator", "images", "replicas", "patches"),
}


def built(folder: Path) -> list[Resource]:
    """The resources of a folder with a kustomization."""
    return _built(folder, [])


def _built(folder: Path, beneath: list[Resource]) -> list[Resource]:
    plan = document(folder / "kustomization.yaml")
    assert plan.keys() <= FIELDS, f"{folder}: {plan.keys() - FIELDS}"
    found = beneath
    for name in plan.get("resources", ()):
        path = folder / name
        found = [*found, *(built(path) if path.is_dir() else documents(path))]
    for generator in plan.get("configMapGenerator", ()):
        assert generator.keys() == {"name", "files"}
        found = [*found, _config_map(folder, **generator)]
    for name in plan.get("components", ()):
        found = _built(folder / name, found)
    for patch in plan.get("patches", ()):
        assert patch.keys() == {"path"}
        change = document(folder / patch["path"])
        _merge(_named(found, change["kind"], change["metadata"]["name"]), change)
    for image in plan.get("images", ()):
        assert image.keys() == {"name", "newName", "digest"}
        for container in _containers(found):
            if container["image"] == image["name"]:
                container["image"] = f"{image['newName']}@{image['digest']}"
    for replicas in plan.get("replicas", ()):
        _named(found, "Deployment", replicas["name"])["spec"]["replicas"] = replicas["count"]
    return found


def _containers(resources: list[Resource]) -> Iterator[Resource]:
    for resource in resources:
        pod = resource.get("spec", {}).get("template", {}).get("spec", {})
        yield from (*pod.get("initContainers", ()), *pod.get("containers", ()))


def _config_map(folder: Path, name: str, files: list[str]) -> Resource:
    data = {file: (folder / file).read_text(encoding="utf-8") for file in files}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def _named(resources: list[Resource], kind: str, name: str) -> Resource:
    (found,) = [r for r in resources if (r["kind"], r["metadata"]["name"]) == (kind, name)]
    return found


def _merge(table: Resource, change: Resource) -> None:
    for key, value in change.items():
        if isinstance(value, dict) and key in table:
            _merge(table[key], value)
        else:
            # Lists are merged by rules of their own, which no patch of ours needs.
            assert not isinstance(value, list) or key not in table
            table[key] = value
