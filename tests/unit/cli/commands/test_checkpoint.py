"""`stream-fs checkpoint` on the checkpoints of replays: look, move, begin elsewhere."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from stream_fs import MultiViewSelector
from stream_fs.cli.commands.checkpoint import Selected
from stream_fs.cli.main import main
from stream_fs.pipeline.administration import read_position, reset_to_offset
from stream_fs.pipeline.ports import Partition
from stream_fs.service.exit_codes import ExitCode
from tests.support.replay_folder import ReplayFolder, values
from tests.support.simulated_process import TOPIC, SimulatedProcess, broker, fill, settings
from tests.support.two_streams import BLUE, VALUES, transport

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def place(tmp_path: Path, capsys: Capture) -> ReplayFolder:
    """A replay of eight chunks."""
    place = ReplayFolder(tmp_path / "mine")
    assert main(place.command()) == ExitCode.OK
    capsys.readouterr()
    return place


def checkpoint(place: ReplayFolder, *arguments: str, at: Path | None = None) -> int:
    path = place.checkpoint if at is None else at
    return main(["checkpoint", *arguments, "--config", str(place.config), "--replay", str(path)])


def test_inspect(place: ReplayFolder, capsys: Capture) -> None:
    assert checkpoint(place, "inspect") == ExitCode.OK
    line = capsys.readouterr().out
    assert line.startswith("digits/0: chunk 8, next offset 218, snapshot of chunk 8 at ")
    assert checkpoint(place, "inspect", "--json") == ExitCode.OK
    printed = json.loads(capsys.readouterr().out)
    state = (printed["chunk"], printed["next_offset"], printed["same_configuration"])
    assert state == (8, 218, True)
    assert printed["input"] == {"first": 0, "end": None}


def test_a_partition_before_its_first_chunk(
    place: ReplayFolder, tmp_path: Path, capsys: Capture
) -> None:
    """There is no model to show, export or give up."""
    model = tmp_path / "model"
    assert checkpoint(place, "export", str(model)) == ExitCode.OK
    short = ReplayFolder(tmp_path / "short", records=5)
    assert main(short.command()) == ExitCode.OK
    capsys.readouterr()
    assert checkpoint(short, "inspect") == ExitCode.OK
    assert capsys.readouterr().out == "digits/0: no chunk yet\n"
    assert checkpoint(short, "export", str(tmp_path / "none")) == ExitCode.CONFIGURATION
    assert "digits/0 has no model yet" in capsys.readouterr().err
    assert checkpoint(short, "reset", "--to-offset", "2", "--yes") == ExitCode.OK
    capsys.readouterr()
    assert checkpoint(short, "inspect") == ExitCode.OK
    assert capsys.readouterr().out == "digits/0: no chunk yet, starts at offset 2\n"
    assert checkpoint(short, "import", str(model), "--to-offset", "0") == ExitCode.OK


def test_a_model_moves_to_another_replay(
    place: ReplayFolder, tmp_path: Path, capsys: Capture
) -> None:
    """And goes on there as the first one does: by the bytes of the next rankings."""
    model = tmp_path / "model"
    assert checkpoint(place, "export", str(model)) == ExitCode.OK
    assert capsys.readouterr().out == f"digits/0: chunk 8, next offset 218, to {model}\n"
    first = place.rankings.read_bytes()
    place.input.write_bytes(b"".join(values(300)))
    assert main(place.command()) == ExitCode.OK
    later = place.rankings.read_bytes()[len(first) :]
    assert later.count(b"\n") == 5

    other = ReplayFolder(tmp_path / "other", records=300)
    assert checkpoint(other, "import", str(model)) == ExitCode.OK
    assert capsys.readouterr().out == "digits/0: continues at offset 218, after chunk 8\n"
    assert main(other.command()) == ExitCode.OK
    assert other.rankings.read_bytes() == later

    third = ReplayFolder(tmp_path / "third", records=100)
    assert checkpoint(third, "import", str(model), "--to-offset", "0") == ExitCode.OK
    assert main(third.command()) == ExitCode.OK
    rankings = [json.loads(line) for line in third.rankings.read_text().splitlines()]
    assert [r["sequence"] for r in rankings] == [9, 10, 11, 12, 13]
    assert rankings[0]["offsets"]["from"] == 0
    assert rankings[0]["records"]["total"] == 200 + 20


def test_a_model_for_the_library(place: ReplayFolder, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    assert checkpoint(place, "export", "--selector", str(path)) == ExitCode.OK
    selector = MultiViewSelector.load(path)
    last = json.loads(place.rankings.read_text().splitlines()[-1])
    published = {
        view["name"]: [feature["index"] for feature in view["features"]] for view in last["views"]
    }
    assert {name: list(order) for name, order in selector.get_order().items()} == published
    assert checkpoint(place, "import", str(path), "--yes") == ExitCode.REFUSED


def test_reset_of_a_replay(place: ReplayFolder) -> None:
    flags = ["--to-offset", "109", "--keep-model", "--yes"]
    assert checkpoint(place, "reset", *flags) == ExitCode.OK
    before = place.rankings.read_bytes()
    assert main(place.command()) == ExitCode.OK
    rankings = place.rankings.read_bytes()
    assert rankings.startswith(before)
    last = json.loads(rankings.splitlines()[-1])
    assert (last["sequence"], last["offsets"]["from"]) == (13, 196)


def test_a_refused_partition_does_not_keep_the_others_from_being_reset(
    place: ReplayFolder, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = broker(2)
    fill(made, VALUES)
    assert SimulatedProcess(made, BLUE).run()
    namesake = settings(stream="blue", group="teal")
    first, second = Partition(TOPIC, 0), Partition(TOPIC, 1)
    reset_to_offset(transport(made, namesake), namesake, second, 0, keep_model=False)
    found = Selected(transport(made, namesake), namesake, [first, second])
    monkeypatch.setattr(
        "stream_fs.cli.commands.checkpoint.selected", lambda *_, **__: nullcontext(found)
    )
    assert main(["checkpoint", "reset", "--config", str(place.config), "--yes"]) == ExitCode.REFUSED
    said = capsys.readouterr()
    assert said.out.splitlines() == ["in/0: nothing was changed", "in/1: starts over"]
    assert "in/0 has no chunk of stream 'blue' in group 'teal'" in said.err
    assert read_position(transport(made, namesake), namesake, second).progress is None


def test_its_partition_may_be_named(place: ReplayFolder, capsys: Capture) -> None:
    """As in the commands that refusals advise, to which `--replay` is only added."""
    assert checkpoint(place, "inspect", "--topic", "digits", "--partition", "0") == ExitCode.OK
    assert capsys.readouterr().out.startswith("digits/0: chunk 8")
    for other in (["--partition", "1"], ["--topic", "letters"]):
        assert checkpoint(place, "inspect", *other) == ExitCode.CONFIGURATION
        assert "has one partition only, --topic digits --partition 0" in capsys.readouterr().err


def test_what_is_there_is_not_given_up_without_asking(
    place: ReplayFolder, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "model"
    assert checkpoint(place, "export", str(model)) == ExitCode.OK
    before = place.checkpoint.read_bytes()
    for command in (["import", str(model)], ["reset"]):
        assert checkpoint(place, *command) == ExitCode.CONFIGURATION
        assert "--yes: is required" in capsys.readouterr().err
        with monkeypatch.context() as patch:
            patch.setattr(sys.stdin, "isatty", lambda: True)
            patch.setattr("builtins.input", lambda _: "n")
            assert checkpoint(place, *command) == ExitCode.PROBLEM
        assert capsys.readouterr().out == "nothing was changed\n"
    assert place.checkpoint.read_bytes() == before
    assert checkpoint(place, "import", str(model), "--yes") == ExitCode.OK


def test_no_answer_is_a_no(
    place: ReplayFolder, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end_of_input(_: str) -> str:
        raise EOFError

    before = place.checkpoint.read_bytes()
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("builtins.input", end_of_input)
    assert checkpoint(place, "reset") == ExitCode.PROBLEM
    out, err = capsys.readouterr()
    assert (out, err) == ("\nnothing was changed\n", "")
    assert place.checkpoint.read_bytes() == before


@pytest.mark.parametrize("flags", [["--to-offset", "-5"], ["--partition", "x"]], ids=" ".join)
def test_offsets_and_partitions_are_whole_numbers(
    flags: list[str], place: ReplayFolder, capsys: Capture
) -> None:
    with pytest.raises(SystemExit) as ended:
        checkpoint(place, "reset", *flags)
    assert ended.value.code == ExitCode.CONFIGURATION
    assert f"argument {flags[0]}: should be a whole number of at least 0" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [[], ["--selector"]])
def test_a_place_that_does_not_exist_cannot_be_written_to(
    flags: list[str], place: ReplayFolder, tmp_path: Path, capsys: Capture
) -> None:
    for target in (tmp_path / "none" / "model", place.config / "model"):
        assert checkpoint(place, "export", str(target), *flags) == ExitCode.STORAGE
        assert f"{target} cannot be written: N" in capsys.readouterr().err


def test_what_cannot_be_done_ends_with_its_code(
    place: ReplayFolder, tmp_path: Path, capsys: Capture
) -> None:
    nowhere, model = tmp_path / "nowhere", tmp_path / "model"
    assert checkpoint(place, "export", str(model), at=nowhere) == ExitCode.CONFIGURATION
    assert "does not exist" in capsys.readouterr().err
    assert checkpoint(place, "import", str(model), at=nowhere) == ExitCode.CONFIGURATION
    assert "does not exist" in capsys.readouterr().err
    assert not nowhere.exists()
    assert checkpoint(place, "import", str(place.config), at=nowhere) == ExitCode.REFUSED
    assert "is not an exported checkpoint" in capsys.readouterr().err
    assert checkpoint(place, "inspect", at=place.config) == ExitCode.REFUSED
    assert checkpoint(place, "inspect", "--partition", "1") == ExitCode.CONFIGURATION
    assert checkpoint(place, "export", str(model)) == ExitCode.OK
    other = ["--set", "selector.clusters=4", "--yes"]
    capsys.readouterr()
    assert checkpoint(place, "import", str(model), *other) == ExitCode.REFUSED
    assert "clusters: 3 → 4" in capsys.readouterr().err
