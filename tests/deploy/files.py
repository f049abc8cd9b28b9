"""Where the deployment files are, and how to read them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


PINNED = re.compile(r"[a-z][\w./-]*:v?\d+\.\d+\.\d+[\w.-]*@sha256:[0-9a-f]{64}")
"""An image by its full version, for people, and its digest, which decides what is fetched."""


def documents(path: Path) -> list[dict[str, Any]]:
    """The documents of a YAML file."""
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def document(path: Path) -> dict[str, Any]:
    """The only document of a YAML file."""
    (only,) = documents(path)
    return only


def blocks(name: str, language: str) -> list[str]:
    """The fenced blocks in this language of a Markdown file."""
    text = (DEPLOY / name).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


DOCKERFILE = (DEPLOY / "docker/Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
DOCKERIGNORE = (DEPLOY / "docker/Dockerfile.dockerignore").read_text(encoding="utf-8")


def image_variables() -> dict[str, str]:
    """The environment variables that the image sets."""
    (words,) = re.findall(r"^ENV (PATH=.*)$", DOCKERFILE, re.MULTILINE)
    return dict(word.split("=", 1) for word in words.split())


RULE_FILES = sorted((DEPLOY / "prometheus").glob("*.yaml"))
RULES: list[dict[str, Any]] = [
    rule for path in RULE_FILES for group in document(path)["groups"] for rule in group["rules"]
]
ALERTS = {rule["alert"]: rule for rule in RULES if "alert" in rule}
RECORDED = {rule["record"] for rule in RULES if "record" in rule}
