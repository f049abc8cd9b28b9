"""`stream-fs evaluate`: from the command line to the report, interrupted and continued."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from stream_fs.cli.main import main
from stream_fs.service.exit_codes import ExitCode
from tests.support.planted_views import planted_views

Capture = pytest.CaptureFixture[str]
PATIENCE = 300.0


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A directory with one small data set."""
    directory = tmp_path / "data"
    directory.mkdir()
    data, labels = planted_views(size=25, missing=0)
    views = {f"view_{v}": x for v, x in enumerate(data.views)}
    np.savez(directory / "planted.npz", allow_pickle=False, labels=labels, **views)
    return directory


def small(data: Path, output: Path) -> list[str]:
    arguments = ["evaluate", "--data", str(data), "--output", str(output), "--sets", "planted"]
    return [*arguments, "--experiments", "ranking", "--repetitions", "2", "--shares", "0.3"]


def test_a_quick_run_on_digits_writes_a_self_contained_report(
    tmp_path: Path, capsys: Capture
) -> None:
    output = tmp_path / "new" / "output"
    arguments = ["evaluate", "--output", str(output), "--quick", "--sets", "digits"]
    arguments += ["--rows", "150", "--repetitions", "1", "--shares", "0.3"]
    arguments += ["--experiments", "ranking", "convergence", "missing", "stability"]
    assert main(arguments) == ExitCode.OK
    captured = capsys.readouterr()
    page = output / "report.html"
    assert captured.out == f"{page}\n"
    assert "ranking digits variance" in captured.err
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"https?:|<script|<link", text)
    for title in ("Goals", "NMI, held-out data, by judge", "Stability", "Convergence"):
        assert title in text
    assert (output / "report.md").is_file()
    lines = (output / "ranking.csv").read_text().splitlines()
    assert len(lines) == 1 + 9 * 2 * 4  # methods, budgets, judges


def test_nothing_is_measured_twice_and_a_report_can_be_written_alone(
    data: Path, tmp_path: Path, capsys: Capture
) -> None:
    output = tmp_path / "output"
    assert main(small(data, output)) == ExitCode.OK
    first = (output / "report.html").read_bytes()
    rows = (output / "rows.jsonl").read_bytes()
    capsys.readouterr()
    (output / "report.html").unlink()
    assert main([*small(data, output), "--report-only"]) == ExitCode.OK
    assert main(small(data, output)) == ExitCode.OK
    assert capsys.readouterr().err == ""
    assert (output / "report.html").read_bytes() == first
    assert (output / "rows.jsonl").read_bytes() == rows


def test_a_run_that_was_killed_continues_to_the_same_csv(data: Path, tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    command = [sys.executable, "-m", "stream_fs.cli"]
    process = subprocess.Popen(
        [*command, *small(data, killed)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    rows = killed / "rows.jsonl"
    deadline = time.monotonic() + PATIENCE
    while not (rows.exists() and rows.read_bytes().count(b"\n") >= 2):
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline, "nothing was measured"
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=PATIENCE)
    assert 2 <= rows.read_bytes().count(b"\n") < 18
    with rows.open("ab") as file:
        file.write(b'{"key": "cut off in the mid')
    assert main(small(data, killed)) == ExitCode.OK
    assert main(small(data, whole)) == ExitCode.OK
    assert (killed / "ranking.csv").read_bytes() == (whole / "ranking.csv").read_bytes()
    assert (killed / "report.html").read_bytes() == (whole / "report.html").read_bytes()


def test_published_masks_are_used(data: Path, tmp_path: Path) -> None:
    masks = np.zeros((1, 100, 3))
    masks[:, :, 1] = 1
    np.savez(data / "planted_wen_folds.npz", allow_pickle=False, **{"del_0.5": masks})
    arguments = ["evaluate", "--data", str(data), "--output", str(tmp_path / "o"), "--quick"]
    arguments += ["--masks", "published", "--sets", "planted", "--experiments", "convergence"]
    assert main(arguments) == ExitCode.OK
    published = (tmp_path / "o" / "convergence.csv").read_text()
    assert main([*arguments, "--masks", "random"]) == ExitCode.OK
    assert (tmp_path / "o" / "convergence.csv").read_text() != published


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "nowhere"], "no data directory nowhere"),
        (["--sets", "unknown"], "no data set unknown; there are digits"),
        (["--experiments", "unknown"], "no experiment unknown; there are ablation"),
        (["--masks", "published"], "published masks need a data directory"),
    ],
)
def test_what_does_not_exist_is_named(
    arguments: list[str], message: str, tmp_path: Path, capsys: Capture
) -> None:
    code = main(["evaluate", "--output", str(tmp_path / "o"), *arguments])
    assert code == ExitCode.CONFIGURATION
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--output"),
        (["--output", "o", "--repetitions", "0"], "should be a whole number of at least 1"),
        (["--output", "o", "--missing", "1"], "should be a number above 0 and below 1"),
        (["--output", "o", "--missing", "abc"], "should be a number"),
        (["--output", "o", "--shares", "0"], "should be a number above 0"),
        (["--output", "o", "--rows", "3"], "should be a whole number of at least 50"),
        (["--output", "o", "--rows", "many"], "should be a whole number of at least 1"),
        (["--output", "o", "--masks", "other"], "invalid choice"),
    ],
)
def test_a_wrong_command_line_ends_with_its_code(
    arguments: list[str], message: str, capsys: Capture
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["evaluate", *arguments])
    assert ended.value.code == ExitCode.CONFIGURATION
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("package", ["sklearn", "matplotlib", "jinja2"])
def test_without_the_extra_the_message_names_it(package: str, tmp_path: Path) -> None:
    program = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from stream_fs.cli.main import main\n"
        f"sys.exit(main(['evaluate', '--output', {str(tmp_path / 'o')!r}, '--quick']))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == ExitCode.PROBLEM
    assert "pip install 'stream-fs[evaluate]'" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "o").exists()
