"""The image: its Dockerfile, what it copies, what it locks, and its health check."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from stream_fs.service import http
from stream_fs.service.http import WebServer
from tests.deploy.files import DEPLOY, DOCKERFILE, DOCKERIGNORE, PINNED, ROOT, image_variables

FOLDER = DEPLOY / "docker"


def test_the_dockerfile_passes_the_linter() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    said = subprocess.run(
        [hadolint, FOLDER / "Dockerfile"], capture_output=True, text=True, check=False
    )
    assert (said.returncode, said.stdout) == (0, "")


def test_base_images_are_pinned_and_have_the_same_python() -> None:
    build, runtime = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert PINNED.fullmatch(build)
    assert PINNED.fullmatch(runtime)
    tag = build.partition("@")[0]
    version, _, system = tag.partition("-")
    assert runtime.partition("@")[0] == f"{version}-slim-{system}"


def test_dockerignore_admits_copied_files_only() -> None:
    let_in = {line[1:] for line in DOCKERIGNORE.splitlines() if line.startswith("!")}
    assert "*" in DOCKERIGNORE.splitlines()
    copied = {
        source
        for words in re.findall(r"^COPY ((?!--from).*)$", DOCKERFILE, re.MULTILINE)
        for source in words.split()[:-1]
    }
    assert copied == let_in
    # The wheel is built of what is copied.
    assert all((ROOT / name).exists() for name in copied)


def test_the_installer_is_locked() -> None:
    (select,) = re.findall(r"sed -n '(.*?)' constraints\.txt", DOCKERFILE)
    found = subprocess.run(
        ["sed", "-n", select, "constraints.txt"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    first, *hashes = found.splitlines()
    assert re.fullmatch(r"uv==[\d.]+ \\", first)
    assert hashes
    assert all(re.fullmatch(r" +--hash=sha256:[0-9a-f]{64}( \\)?", line) for line in hashes)
    assert not hashes[-1].endswith("\\")


def test_every_installed_package_has_a_hash() -> None:
    steps = re.findall(r"(?:pip install|uv build) [^&\n]*", DOCKERFILE)
    assert len(steps) == 4
    # Our own wheel has just been built.
    assert all("--require-hashes" in step or "--no-deps dist/*.whl" in step for step in steps)


def test_the_label_has_the_version() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (version,) = re.findall(r"^ARG VERSION=(.*)$", DOCKERFILE, re.MULTILINE)
    assert version == declared["project"]["version"]


def test_the_image_runs_as_an_unprivileged_user() -> None:
    *_, user = re.findall(r"^USER (.*)$", DOCKERFILE, re.MULTILINE)
    assert user == "65532:65532"


@pytest.mark.parametrize(("alive", "code"), [(True, 0), (False, 1)])
def test_the_health_check_requests_the_service(alive: bool, code: int) -> None:
    pages = http.service_pages(
        CollectorRegistry(), lambda: (alive, "hung"), lambda: (False, "restoring")
    )
    with WebServer("127.0.0.1", 0, pages) as server:
        asked = ask_health(server.port)
    assert (asked.returncode, asked.stdout.strip()) == (code, "ok" if alive else "hung")


def test_the_health_check_fails_without_a_server() -> None:
    with WebServer("127.0.0.1", 0, {}) as server:
        port = server.port
    asked = ask_health(port)
    assert asked.returncode == 1
    assert f"port {port}" in asked.stderr


def test_service_and_health_check_agree_on_the_port() -> None:
    (exposed,) = re.findall(r"^EXPOSE (\d+)$", DOCKERFILE, re.MULTILINE)
    assert image_variables()["STREAM_FS_SERVICE__PORT"] == exposed
    assert image_variables()["STREAM_FS_SERVICE__HOST"] == "0.0.0.0"


def ask_health(port: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", FOLDER / "healthcheck.py"],
        env={"STREAM_FS_SERVICE__PORT": str(port)},
        capture_output=True,
        text=True,
        check=False,
    )
