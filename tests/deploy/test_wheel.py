"""The wheel in an environment that has its dependencies and nothing else."""

from __future__ import annotations

import json
import shutil
import sysconfig
import zipfile
from pathlib import Path

import pytest

from stream_fs.service.configuration import load
from tests.deploy.files import ROOT
from tests.deploy.wheels import COMPILER, PROJECT, built, installed, run

KERNELS = "stream_fs/selector/kernels"
EXTENSION = f"{KERNELS}/_native.abi3.so"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment into which the wheel was installed."""
    return installed(wheel, tmp_path_factory.mktemp("home"))


def test_the_wheel_is_installed(programs: Path) -> None:
    where = "import stream_fs; print(stream_fs.__file__)"
    place = run(programs / "python", "-c", where, cwd=programs)
    assert Path(place.strip()).is_relative_to(programs.parent)


def test_the_command_prints_its_version(programs: Path) -> None:
    said = run(programs / "stream-fs", "version", cwd=programs)
    assert said.splitlines()[0] == f"stream-fs {PROJECT['version']}"


def test_a_wheel_built_with_a_compiler_has_the_compiled_core(wheel: Path, programs: Path) -> None:
    if shutil.which(COMPILER) is None:
        pytest.skip("there is no C compiler")
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    # One binary for this and all later versions of Python.
    assert wheel.name.endswith(f"-cp311-abi3-{platform}.whl")
    assert EXTENSION in zipfile.ZipFile(wheel).namelist()
    said = run(programs / "stream-fs", "version", cwd=programs)
    assert said.splitlines()[1:] == ["core: compiled"]


def test_a_wheel_built_without_a_compiler_is_for_every_platform(tmp_path: Path) -> None:
    wheel = built(tmp_path, str(tmp_path / "no-compiler"))
    assert wheel.name.endswith("-py3-none-any.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if name.endswith(".so")]
    assert f"{KERNELS}/fallback.py" in names
    programs = installed(wheel, tmp_path / "home")
    said = run(programs / "stream-fs", "version", cwd=programs)
    why = "it was not built, for want of a C compiler"
    assert said.splitlines()[1:] == [f"core: numpy (of the compiled one: {why})"]


def test_the_wheel_has_no_c_sources(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if name.startswith(f"{KERNELS}/native/")]
    kinds = {Path(name).suffix for name in names if name.startswith("stream_fs/selector/")}
    assert kinds <= {".py", ".pyi", ".so"}


def test_the_example_configuration_is_valid(programs: Path, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(run(programs / "stream-fs", "config", "example", cwd=tmp_path))
    said = run(programs / "stream-fs", "config", "check", "--config", path, cwd=tmp_path)
    assert "the configuration is valid" in said


def test_a_secret_is_read_from_its_file_and_hidden(programs: Path, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    (tmp_path / "password").write_text("correct-horse\n")
    example = run(programs / "stream-fs", "config", "example", cwd=tmp_path)
    secret = '[kafka.properties]\n"sasl.password" = { file = "password" }\n'
    path.write_text(example + secret)
    said = run(programs / "stream-fs", "config", "show", "--config", path, cwd=tmp_path)
    assert '{ file = "password" }' in said
    assert "correct-horse" not in said


def test_the_wheel_replays_records(programs: Path, tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    config = ROOT / "deploy/compose/config.toml"
    views = [(view.name, view.dimension) for view in load(config, {}).views]
    lines = [
        {"v": 1, "views": {name: [(row * index) % 7 for index in range(d)] for name, d in views}}
        for row in range(200)
    ]
    records.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    command = ("replay", "--config", config, "--set", f"chunk.records={len(lines)}", records)
    said = run(programs / "stream-fs", *command, cwd=tmp_path)
    (ranking,) = [json.loads(line) for line in said.splitlines()]
    assert ranking["records"]["total"] == len(lines)
    assert [view["name"] for view in ranking["views"]] == [name for name, _ in views]


def test_the_wheel_has_the_status_page(programs: Path) -> None:
    listing = "from stream_fs.service.http import status_pages; print(*status_pages(lambda: None))"
    served = run(programs / "python", "-c", listing, cwd=programs).split()
    parts = {path.name for path in (ROOT / "stream_fs/service/page").iterdir()}
    assert {"/", "/api/status", "/page/main.js"} <= set(served)
    assert len(served) == len(parts) + 1


def test_the_service_runs_with_its_dependencies_only(programs: Path) -> None:
    run(programs / "python", "-c", "import stream_fs.service.run", cwd=programs)


def test_the_wheel_has_the_template_of_the_report(wheel: Path) -> None:
    assert "stream_fs/evaluate/report/page.html.jinja" in zipfile.ZipFile(wheel).namelist()
