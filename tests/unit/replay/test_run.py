"""A replay that is killed at any time ends as an undisturbed one, and is not mixed with another."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest

from stream_fs.checkpoint import decode_progress, encode_progress, parse_key
from stream_fs.errors import (
    BrokenFile,
    ConfigurationChanged,
    InputChanged,
    InvalidParameter,
    PoisonFlood,
    ReplayChanged,
)
from stream_fs.pipeline.ports import StoredRecord
from stream_fs.replay import journal as journal_module
from stream_fs.replay.journal import Journal
from stream_fs.replay.outputs import FileOutput, NoOutput, StreamOutput
from stream_fs.replay.run import ADDED_FACTS, Plan, Summary, check_unchanged, replay, run_facts
from stream_fs.replay.sources import Source
from tests.support.replays import BAD, VALUES, Folder
from tests.support.settings import dead_letter_settings
from tests.support.simulated_process import (
    LETTERS,
    RANKINGS,
    TOPIC,
    Crash,
    SimulatedProcess,
    broker,
    fill,
    settings,
)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "own")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    folder = Folder(tmp_path_factory.mktemp("undisturbed"))
    replay(folder.plan())
    return folder.output


def crashing(step: str, survived: int) -> Callable[[str], None]:
    left = survived

    def at(name: str) -> None:
        nonlocal left
        if name == step:
            if left == 0:
                raise Crash(step)
            left -= 1

    return at


# --- output -------------------------------------------------------------------------------


def test_rankings_and_dead_letters_are_those_of_the_service(folder: Folder) -> None:
    """Compared with a worker on a broker in memory, with the same offsets and timestamps."""
    replay(folder.plan(timestamp=lambda number: 1000 + number))
    made = broker()
    fill(made, VALUES)
    assert SimulatedProcess(made, settings()).run()
    rankings = [message.value for message in made.committed(RANKINGS)]
    assert len(rankings) == 8
    assert folder.rankings.read_bytes().splitlines() == rankings
    found = [json.loads(line) for line in folder.letters.read_text().splitlines()]
    letters = list(made.committed(LETTERS))
    assert len(found) == len(letters) > 5
    for line, letter in zip(found, letters, strict=True):
        assert base64.b64decode(line["value"]) == letter.value
        assert line["key"] is None
        expected = {name: (value or b"").decode() for name, value in letter.headers}
        assert line["headers"] == expected


def test_the_summary(folder: Folder) -> None:
    summary = replay(folder.plan())
    assert summary.position == len(VALUES) == 144
    assert (summary.chunk, summary.rankings) == (8, 8)
    last = json.loads(folder.rankings.read_text().splitlines()[-1])
    assert summary.next == last["offsets"]["next"]
    behind = [value for value in VALUES[summary.next :] if value != BAD]
    assert summary.incomplete_records == len(behind) > 0
    assert summary.incomplete_dead_letters == 144 - summary.next - len(behind) > 0
    letters = len(folder.letters.read_text().splitlines())
    assert summary.dead_letters == {"malformed": letters}
    again = replay(folder.plan())
    assert (again.rankings, again.chunk, again.incomplete_records) == (
        0,
        8,
        summary.incomplete_records,
    )
    assert again.resumed == summary.next


def test_the_summary_does_not_count_records_that_an_earlier_run_has_published(
    folder: Folder,
) -> None:
    """The model is older than the last ranking, and chunks are computed again."""
    whole = replay(Folder(folder.path / "whole").plan())
    seldom = settings(checkpoint_every=100)
    with pytest.raises(Crash):
        replay(folder.plan(settings=seldom), crash_hook=crashing("committed", 7))
    again = replay(folder.plan(settings=seldom))
    assert again.resumed == whole.next
    assert (again.incomplete_records, again.incomplete_dead_letters) == (
        whole.incomplete_records,
        whole.incomplete_dead_letters,
    )


def test_skipped_records_are_not_incomplete(folder: Folder) -> None:
    skipping = settings(dead_letters=dead_letter_settings(policy="skip"))
    summary = replay(folder.plan(settings=skipping))
    assert summary.dead_letters.total() == VALUES.count(BAD)
    assert summary.incomplete_records == len([one for one in VALUES[summary.next :] if one != BAD])
    assert summary.incomplete_dead_letters == 0


def test_without_a_checkpoint_it_begins_at_the_beginning(
    folder: Folder, undisturbed: tuple[bytes, bytes]
) -> None:
    for _ in range(2):
        assert replay(folder.plan(checkpoint=None)).rankings == 8
        assert folder.output == undisturbed
    assert not folder.checkpoint.exists()


def test_dead_letters_without_an_output_are_counted(
    folder: Folder, undisturbed: tuple[bytes, bytes]
) -> None:
    summary = replay(folder.plan(dead_letters=NoOutput()))
    assert summary.dead_letters.total() > 5
    assert folder.rankings.read_bytes() == undisturbed[0]


def test_skipped_records_are_counted(folder: Folder) -> None:
    skipping = settings(dead_letters=dead_letter_settings(policy="skip"))
    summary = replay(folder.plan(settings=skipping))
    assert summary.dead_letters == {"malformed": 14}
    assert folder.letters.read_bytes() == b""


def test_a_flood_of_bad_records_stops_it(folder: Folder) -> None:
    strict = settings(dead_letters=dead_letter_settings(max_ratio=0.01, tolerated=2))
    with pytest.raises(PoisonFlood):
        replay(folder.plan(settings=strict))


def test_an_incomplete_file_is_replayed_to_its_last_complete_record(
    folder: Folder, undisturbed: tuple[bytes, bytes]
) -> None:
    """As when it is still being written; once it is complete, the replay continues."""
    whole = folder.input.read_bytes()
    folder.input.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BrokenFile, match="still being written"):
        replay(folder.plan())
    assert 0 < folder.rankings.stat().st_size < len(undisturbed[0])
    folder.input.write_bytes(whole)
    replay(folder.plan())
    assert folder.output == undisturbed


def test_files_are_one_sequence_of_records(
    folder: Folder, undisturbed: tuple[bytes, bytes]
) -> None:
    views = settings().views
    sources = []
    for number, part in enumerate((VALUES[:50], VALUES[50:51], VALUES[51:])):
        path = folder.path / f"{number}.msgpack"
        path.write_bytes(b"".join(part))
        sources.append(Source(str(path), "msgpack", views, "msgpack"))
    replay(folder.plan(sources=sources))
    assert folder.output == undisturbed


def test_files_of_two_formats_are_refused(folder: Folder) -> None:
    (folder.path / "x.jsonl").touch()
    views = settings().views
    both = [
        Source(str(folder.input), "msgpack", views, "msgpack"),
        Source(str(folder.path / "x.jsonl"), "jsonl", views, "msgpack"),
    ]
    with pytest.raises(InvalidParameter, match="the same format"):
        folder.plan(sources=both)


def test_arrays_and_json_lines_give_the_same_rankings(folder: Folder) -> None:
    rng = np.random.default_rng(0)
    arrays = {"a": rng.random((80, 6)), "b": rng.random((80, 4))}
    arrays["b"][::3] = np.nan
    np.savez(folder.path / "x.npz", a=arrays["a"], b=arrays["b"])
    chosen = settings()
    outputs = []
    for wanted in ("msgpack", "json"):
        source = Source(str(folder.path / "x.npz"), "npz", chosen.views, wanted)
        replay(folder.plan(sources=[source], checkpoint=None))
        outputs.append(folder.output)
    lines = [
        json.dumps(
            {
                "v": 1,
                "views": {
                    name: None if np.isnan(array[row]).all() else array[row].tolist()
                    for name, array in arrays.items()
                },
            }
        )
        for row in range(80)
    ]
    (folder.path / "x.jsonl").write_text("\n".join(lines))
    source = Source(str(folder.path / "x.jsonl"), "jsonl", chosen.views, "msgpack")
    replay(folder.plan(sources=[source], checkpoint=None))
    outputs.append(folder.output)
    assert outputs[0] == outputs[1] == outputs[2]
    assert outputs[0][0].count(b"\n") == 5


# --- killed and started again ---------------------------------------------------------------------


@pytest.mark.parametrize("survived", [0, 1, 4])
@pytest.mark.parametrize(
    "step", ["updated", "begun", "snapshot sent", "records sent", "committed", "advised"]
)
def test_killed_at_a_step_the_output_is_undisturbed(
    folder: Folder, undisturbed: tuple[bytes, bytes], step: str, survived: int
) -> None:
    times = survived if step != "snapshot sent" else min(survived, 1)
    with pytest.raises(Crash):
        replay(folder.plan(), crash_hook=crashing(step, times))
    replay(folder.plan())
    assert folder.output == undisturbed


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99, 1.0])
@pytest.mark.parametrize("commit", range(9))
def test_killed_while_the_journal_is_written(
    folder: Folder,
    undisturbed: tuple[bytes, bytes],
    monkeypatch: pytest.MonkeyPatch,
    commit: int,
    share: float,
) -> None:
    """The rankings are in their file, but only a part of the journal's transaction is."""
    sizes = [0]

    def crash(file: BinaryIO) -> None:
        file.flush()
        sizes.append(folder.checkpoint.stat().st_size)
        if len(sizes) == commit + 2:
            before, whole = sizes[-2:]
            os.truncate(folder.checkpoint, before + round((whole - before) * share))
            raise Crash("the journal is written")

    with monkeypatch.context() as patch:
        patch.setattr(journal_module, "_synchronise", crash)
        with pytest.raises(Crash):
            replay(folder.plan())
    replay(folder.plan())
    assert folder.output == undisturbed


@pytest.mark.parametrize(
    "rest", [b"", b"half a line", b'{"a whole": "line"}\n', b"more than follows" * 10_000]
)
def test_output_behind_the_checkpoint_is_truncated(
    folder: Folder, undisturbed: tuple[bytes, bytes], rest: bytes
) -> None:
    with pytest.raises(Crash):
        replay(folder.plan(), crash_hook=crashing("updated", 4))
    for path in (folder.rankings, folder.letters):
        with path.open("ab") as file:
            file.write(rest)
    replay(folder.plan())
    assert folder.output == undisturbed


def test_a_stop_request_saves_the_model(folder: Folder, undisturbed: tuple[bytes, bytes]) -> None:
    requested: list[Summary] = []

    def report(summary: Summary) -> None:
        if summary.chunk == 5:  # a snapshot is due at 1 and 4
            requested.append(summary)

    replay(folder.plan(), stop_requested=lambda: bool(requested), report=report)
    steps: list[str] = []
    replay(folder.plan(), crash_hook=steps.append)
    assert folder.output == undisturbed
    assert steps.count("updated") == 3  # no published chunk is computed again


def test_a_file_that_has_grown_is_continued(
    folder: Folder, undisturbed: tuple[bytes, bytes]
) -> None:
    folder.fill(VALUES[:70])
    assert replay(folder.plan()).rankings == 3
    folder.fill(VALUES)
    assert replay(folder.plan()).rankings == 5
    assert folder.output == undisturbed


def test_a_ranking_that_differs_when_computed_again_is_a_warning(folder: Folder) -> None:
    """As on another CPU: the model is restored, and later chunks are computed again."""
    with pytest.raises(Crash):
        replay(folder.plan(), crash_hook=crashing("advised", 5))
    journal = Journal(folder.checkpoint)
    (last,) = [record for record in journal.records if b"progress" in record.key][-1:]
    progress = replace(decode_progress(last.value or b""), digest="0" * 64)
    altered = StoredRecord(journal.reserve(), last.key, encode_progress(progress))
    journal.commit([altered], {})
    journal.close()
    assert replay(folder.plan()).warnings == [
        "the ranking of chunk 6 differs when computed again: another CPU?"
    ]


def test_a_damaged_model_is_a_warning(folder: Folder, undisturbed: tuple[bytes, bytes]) -> None:
    with pytest.raises(Crash):
        replay(folder.plan(), crash_hook=crashing("advised", 5))
    journal = Journal(folder.checkpoint)
    journal.close()
    newest = [record for record in journal.records if record.key.endswith(b"/0")][-1]
    altered = [
        replace(record, value=b"damaged") if record is newest else record
        for record in journal.records
    ]
    folder.checkpoint.unlink()
    damaged = Journal(folder.checkpoint)
    damaged.end = journal.end
    damaged.commit(altered, journal.notes)
    damaged.close()
    (warning,) = replay(folder.plan()).warnings
    assert warning.startswith("an older model was used: ")
    assert folder.output == undisturbed


# --- another replay ------------------------------------------------------------------


def changes() -> Iterator[tuple[str, dict[str, Any]]]:
    usual = settings()
    yield "chunk.records: 15 → 16", {"settings": settings(chunk_records=16)}
    yield "chunk.max_span: None → 5", {"settings": settings(chunk_max_span=5)}
    yield "output.top: None → 2", {"settings": settings(output_top=2)}
    yield "output.format: 'json' → 'msgpack'", {"settings": settings(output_format="msgpack")}
    yield "stream.name: 's' → 't'", {"settings": settings(stream="t")}
    yield "dead letters kept: True → False", {"dead_letters": NoOutput()}
    yield "--first-timestamp: absent → 7", {"more_facts": {"--first-timestamp": 7}}
    seeded = replace(usual.params, seed=usual.params.seed + 1)
    yield "selector.seed: 0 → 1", {"settings": settings(params=seeded)}


@pytest.mark.parametrize(("line", "change"), list(changes()), ids=lambda value: str(value)[:30])
def test_another_configuration_is_refused(
    folder: Folder, line: str, change: dict[str, Any]
) -> None:
    replay(folder.plan())
    before = folder.output, folder.checkpoint.read_bytes()
    with pytest.raises(ReplayChanged) as caught:
        replay(folder.plan(**change))
    assert caught.value.differences == (line,)
    assert "begin a new replay with another checkpoint" in str(caught.value)
    assert (folder.output, folder.checkpoint.read_bytes()) == before


def test_a_checkpoint_of_an_earlier_release_is_continued(folder: Folder) -> None:
    """Its keys name no owner, and some facts are missing in its notes."""
    replay(folder.plan())
    whole = folder.output
    other = Folder(folder.path / "other", VALUES[:80])
    replay(other.plan())
    as_written_by_release_0_1(other.checkpoint)
    other.fill(VALUES)
    summary = replay(other.plan())
    assert other.output == whole
    assert summary.warnings == []


def as_written_by_release_0_1(path: Path) -> None:
    """Convert a checkpoint into one of releases up to 0.1."""
    journal = Journal(path, writing=False)
    records, notes = list(journal.records), dict(journal.notes)
    journal.close()
    notes["run"] = {name: value for name, value in notes["run"].items() if name not in ADDED_FACTS}
    path.unlink()
    journal = Journal(path)
    rewritten = []
    for record in records:
        parsed = parse_key(record.key)
        assert parsed is not None
        if parsed.keys.owner is None:  # the marker, which these do not write
            continue
        keys = replace(parsed.keys, owner=None)
        key, value = keys.progress, record.value
        if parsed.content == "progress":
            progress = decode_progress(record.value or b"")
            value = encode_progress(replace(progress, owner=None))
        elif parsed.part is None:
            key = keys.manifest(parsed.slot or 0)
        else:
            key = keys.part(parsed.slot or 0, parsed.part)
        while journal.reserve() < record.offset:
            pass
        rewritten.append(StoredRecord(record.offset, key, value))
    journal.commit(rewritten, notes)
    journal.close()


def test_facts_may_be_missing_in_a_checkpoint_of_an_earlier_release() -> None:
    now = run_facts(settings(), TOPIC, {})
    before = {name: value for name, value in now.items() if "max_open_bytes" not in name}
    check_unchanged("checkpoint", before, now)
    with pytest.raises(ReplayChanged, match="max_open_bytes"):
        check_unchanged("checkpoint", {**now, "dead_letters.max_open_bytes": "7"}, now)
    without_policy = {name: value for name, value in now.items() if "policy" not in name}
    with pytest.raises(ReplayChanged, match="policy: absent"):
        check_unchanged("checkpoint", without_policy, now)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (VALUES[:60], "is 1[0-9]+ records into the input, which has only 60"),
        ([VALUES[1], VALUES[0], *VALUES[2:]], "records are not those of which the checkpoint"),
        (VALUES[1:], "records are not those of which the checkpoint"),
    ],
)
def test_other_input_is_refused(folder: Folder, values: list[bytes], message: str) -> None:
    """The model is older than the last ranking, so records are read again."""
    with pytest.raises(Crash):
        replay(folder.plan(), crash_hook=crashing("advised", 5))
    before = folder.output, folder.checkpoint.read_bytes()
    folder.fill(values)
    with pytest.raises(InputChanged, match=message):
        replay(folder.plan())
    assert (folder.output, folder.checkpoint.read_bytes()) == before


def test_missing_output_is_refused(folder: Folder) -> None:
    replay(folder.plan())
    folder.rankings.write_bytes(folder.rankings.read_bytes()[:-1])
    with pytest.raises(ReplayChanged, match=r"rankings.jsonl: \d+ bytes → \d+ bytes"):
        replay(folder.plan())
    folder.rankings.unlink()
    with pytest.raises(ReplayChanged, match=r"rankings.jsonl: \d+ bytes → 0 bytes"):
        replay(folder.plan())


def test_a_stream_cannot_be_resumed(folder: Folder) -> None:
    replay(folder.plan())
    with pytest.raises(ReplayChanged, match="a file → a stream"), folder.input.open("rb") as some:
        replay(folder.plan(rankings=StreamOutput(some, lambda _: b"")))


def test_an_output_that_cannot_be_truncated_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="not a regular file"):
        FileOutput(tmp_path, lambda _: b"")


def test_a_model_of_other_parameters_is_refused(folder: Folder) -> None:
    """Where the journal has no facts, as after an import."""
    replay(folder.plan())
    journal = Journal(folder.checkpoint)
    journal.commit([], {"run": None})
    journal.close()
    other = replace(settings().params, clusters=3)
    with pytest.raises(ConfigurationChanged, match="clusters: 2 → 3"):
        replay(folder.plan(settings=settings(params=other)))


def test_the_plan_stands_for_the_first_partition(folder: Folder) -> None:
    plan: Plan = folder.plan()
    assert str(plan.partition) == "in/0"
