"""A replay that is killed at any moment ends as one that was not, and refuses to mix two."""

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
from stream_fs.pipeline.settings import DeadLetterSettings
from stream_fs.replay import journal as journal_module
from stream_fs.replay.journal import Journal
from stream_fs.replay.outputs import FileOutput, NoOutput, StreamOutput
from stream_fs.replay.run import LATER, Plan, Summary, check_same, identity, replay
from stream_fs.replay.sources import Source
from tests.unit.pipeline.lives import (
    LETTERS,
    RANKINGS,
    TOPIC,
    Crash,
    Life,
    broker,
    fill,
    settings,
)
from tests.unit.replay.replays import BAD, VALUES, Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "mine")


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


# --- what comes out -------------------------------------------------------------------------------


def test_rankings_and_dead_letters_are_those_of_the_service(folder: Folder) -> None:
    """The same worker on a broker in memory, which numbers and stamps the records alike."""
    replay(folder.plan(timestamp=lambda number: 1000 + number))
    made = broker()
    fill(made, VALUES)
    assert Life(made, settings()).run()
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
    assert summary.waiting == len(behind) > 0
    assert summary.waiting_letters == 144 - summary.next - len(behind) > 0
    letters = len(folder.letters.read_text().splitlines())
    assert summary.letters == {"malformed": letters}
    again = replay(folder.plan())
    assert (again.rankings, again.chunk, again.waiting) == (0, 8, summary.waiting)
    assert again.resumed == summary.next


def test_the_summary_counts_no_record_that_an_earlier_life_has_published(folder: Folder) -> None:
    """The model is older than the last ranking then: chunks are folded in once more."""
    whole = replay(Folder(folder.path / "whole").plan())
    seldom = settings(checkpoint_every=100)
    with pytest.raises(Crash):
        replay(folder.plan(settings=seldom), crash_hook=crashing("committed", 7))
    again = replay(folder.plan(settings=seldom))
    assert again.resumed == whole.next
    assert (again.waiting, again.waiting_letters) == (whole.waiting, whole.waiting_letters)


def test_what_is_skipped_does_not_wait(folder: Folder) -> None:
    skipping = settings(dead_letters=DeadLetterSettings(policy="skip"))
    summary = replay(folder.plan(settings=skipping))
    assert summary.letters.total() == VALUES.count(BAD)
    assert summary.waiting == len([one for one in VALUES[summary.next :] if one != BAD])
    assert summary.waiting_letters == 0


def test_without_a_checkpoint_it_begins_at_the_beginning(
    folder: Folder, undisturbed: tuple[bytes, bytes]
) -> None:
    for _ in range(2):
        assert replay(folder.plan(checkpoint=None)).rankings == 8
        assert folder.output == undisturbed
    assert not folder.checkpoint.exists()


def test_dead_letters_that_nobody_asked_for_are_counted(
    folder: Folder, undisturbed: tuple[bytes, bytes]
) -> None:
    summary = replay(folder.plan(letters=NoOutput()))
    assert summary.letters.total() > 5
    assert folder.rankings.read_bytes() == undisturbed[0]


def test_skipped_records_are_counted(folder: Folder) -> None:
    skipping = settings(dead_letters=DeadLetterSettings("skip"))
    summary = replay(folder.plan(settings=skipping))
    assert summary.letters == {"malformed": 14}
    assert folder.letters.read_bytes() == b""


def test_a_flood_of_bad_records_stops_it(folder: Folder) -> None:
    strict = settings(dead_letters=DeadLetterSettings(max_ratio=0.01, tolerated=2))
    with pytest.raises(PoisonFlood):
        replay(folder.plan(settings=strict))


def test_a_file_that_ends_too_early_keeps_what_is_whole(
    folder: Folder, undisturbed: tuple[bytes, bytes]
) -> None:
    """As when it is still being written; when it is whole, the replay goes on."""
    whole = folder.input.read_bytes()
    folder.input.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BrokenFile, match="still being written"):
        replay(folder.plan())
    assert 0 < folder.rankings.stat().st_size < len(undisturbed[0])
    folder.input.write_bytes(whole)
    replay(folder.plan())
    assert folder.output == undisturbed


def test_files_are_one_run_of_records(folder: Folder, undisturbed: tuple[bytes, bytes]) -> None:
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
    with pytest.raises(InvalidParameter, match="files of one format"):
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
def test_killed_at_a_step_it_ends_as_if_it_was_not(
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
    """Rankings are in their file already; of the checkpoint's transaction only a part is."""
    sizes = [0]

    def dying(file: BinaryIO) -> None:
        file.flush()
        sizes.append(folder.checkpoint.stat().st_size)
        if len(sizes) == commit + 2:
            before, whole = sizes[-2:]
            os.truncate(folder.checkpoint, before + round((whole - before) * share))
            raise Crash("the journal is written")

    with monkeypatch.context() as patch:
        patch.setattr(journal_module, "_synced", dying)
        with pytest.raises(Crash):
            replay(folder.plan())
    replay(folder.plan())
    assert folder.output == undisturbed


@pytest.mark.parametrize(
    "rest", [b"", b"half a line", b'{"a whole": "line"}\n', b"more than follows" * 10_000]
)
def test_what_is_behind_the_checkpoint_is_cut_off(
    folder: Folder, undisturbed: tuple[bytes, bytes], rest: bytes
) -> None:
    with pytest.raises(Crash):
        replay(folder.plan(), crash_hook=crashing("updated", 4))
    for path in (folder.rankings, folder.letters):
        with path.open("ab") as file:
            file.write(rest)
    replay(folder.plan())
    assert folder.output == undisturbed


def test_stop_requests_it_saves_its_model(folder: Folder, undisturbed: tuple[bytes, bytes]) -> None:
    asked: list[Summary] = []

    def told(summary: Summary) -> None:
        if summary.chunk == 5:  # a snapshot is due at 1 and 4
            asked.append(summary)

    replay(folder.plan(), stopping=lambda: bool(asked), told=told)
    steps: list[str] = []
    replay(folder.plan(), crash_hook=steps.append)
    assert folder.output == undisturbed
    assert steps.count("updated") == 3  # nothing that was published is computed again


def test_a_file_that_has_grown_is_gone_on_with(
    folder: Folder, undisturbed: tuple[bytes, bytes]
) -> None:
    folder.fill(VALUES[:70])
    assert replay(folder.plan()).rankings == 3
    folder.fill(VALUES)
    assert replay(folder.plan()).rankings == 5
    assert folder.output == undisturbed


def test_a_ranking_that_comes_out_otherwise_is_remarked(folder: Folder) -> None:
    """As on another CPU: the model is restored, and the chunks behind it are computed again."""
    with pytest.raises(Crash):
        replay(folder.plan(), crash_hook=crashing("advised", 5))
    journal = Journal(folder.checkpoint)
    (last,) = [record for record in journal.records if b"progress" in record.key][-1:]
    progress = replace(decode_progress(last.value or b""), digest="0" * 64)
    altered = StoredRecord(journal.reserve(), last.key, encode_progress(progress))
    journal.commit([altered], {})
    journal.close()
    assert replay(folder.plan()).remarks == [
        "chunk 6, computed again, is not as it was written: another CPU?"
    ]


def test_a_damaged_model_is_remarked(folder: Folder, undisturbed: tuple[bytes, bytes]) -> None:
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
    (remark,) = replay(folder.plan()).remarks
    assert remark.startswith("an older model was used: ")
    assert folder.output == undisturbed


# --- what is not the same replay ------------------------------------------------------------------


def changes() -> Iterator[tuple[str, dict[str, Any]]]:
    usual = settings()
    yield "chunk.records: 15 → 16", {"settings": settings(chunk_records=16)}
    yield "chunk.max_span: None → 5", {"settings": settings(chunk_max_span=5)}
    yield "output.top: None → 2", {"settings": settings(output_top=2)}
    yield "output.format: 'json' → 'msgpack'", {"settings": settings(output_format="msgpack")}
    yield "stream.name: 's' → 't'", {"settings": settings(stream="t")}
    yield "dead letters kept: True → False", {"letters": NoOutput()}
    yield "--first-timestamp: not there → 7", {"more": {"--first-timestamp": 7}}
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
    """Its keys name no owner, and its notes lack some facts."""
    replay(folder.plan())
    whole = folder.output
    other = Folder(folder.path / "other", VALUES[:80])
    replay(other.plan())
    as_written_before(other.checkpoint)
    other.fill(VALUES)
    summary = replay(other.plan())
    assert other.output == whole
    assert summary.remarks == []


def as_written_before(path: Path) -> None:
    """Turn a checkpoint into what releases up to 0.1 wrote."""
    journal = Journal(path, writing=False)
    records, notes = list(journal.records), dict(journal.notes)
    journal.close()
    notes["run"] = {name: value for name, value in notes["run"].items() if name not in LATER}
    path.unlink()
    journal = Journal(path)
    rewritten = []
    for record in records:
        parsed = parse_key(record.key)
        assert parsed is not None
        if parsed.keys.owner is None:  # the marker, which they did not write
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


def test_a_checkpoint_of_an_earlier_release_lacks_some_facts() -> None:
    now = identity(settings(), TOPIC, {})
    before = {name: value for name, value in now.items() if "max_open_bytes" not in name}
    check_same("checkpoint", before, now)
    with pytest.raises(ReplayChanged, match="max_open_bytes"):
        check_same("checkpoint", {**now, "dead_letters.max_open_bytes": "7"}, now)
    without_policy = {name: value for name, value in now.items() if "policy" not in name}
    with pytest.raises(ReplayChanged, match="policy: not there"):
        check_same("checkpoint", without_policy, now)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (VALUES[:60], "is 1[0-9]+ records into the input, which has only 60"),
        ([VALUES[1], VALUES[0], *VALUES[2:]], "records are not those that the checkpoint"),
        (VALUES[1:], "records are not those that the checkpoint"),
    ],
)
def test_other_input_is_refused(folder: Folder, values: list[bytes], told: str) -> None:
    """Also with a model that is older than the last ranking, so that records are read again."""
    with pytest.raises(Crash):
        replay(folder.plan(), crash_hook=crashing("advised", 5))
    before = folder.output, folder.checkpoint.read_bytes()
    folder.fill(values)
    with pytest.raises(InputChanged, match=told):
        replay(folder.plan())
    assert (folder.output, folder.checkpoint.read_bytes()) == before


def test_output_that_is_gone_is_refused(folder: Folder) -> None:
    replay(folder.plan())
    folder.rankings.write_bytes(folder.rankings.read_bytes()[:-1])
    with pytest.raises(ReplayChanged, match=r"rankings.jsonl: \d+ bytes → \d+ bytes"):
        replay(folder.plan())
    folder.rankings.unlink()
    with pytest.raises(ReplayChanged, match=r"rankings.jsonl: \d+ bytes → 0 bytes"):
        replay(folder.plan())


def test_a_stream_has_nothing_to_go_back_to(folder: Folder) -> None:
    replay(folder.plan())
    with pytest.raises(ReplayChanged, match="a file → a stream"), folder.input.open("rb") as some:
        replay(folder.plan(rankings=StreamOutput(some, lambda _: b"")))


def test_a_file_that_cannot_be_cut_back_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="not a plain file"):
        FileOutput(tmp_path, lambda _: b"")


def test_a_model_that_means_something_else_is_refused(folder: Folder) -> None:
    """Where the journal does not say how the replay was begun, as after an import."""
    replay(folder.plan())
    journal = Journal(folder.checkpoint)
    journal.commit([], {"run": None})
    journal.close()
    other = replace(settings().params, clusters=3)
    with pytest.raises(ConfigurationChanged, match="clusters: 2 → 3"):
        replay(folder.plan(settings=settings(params=other)))


def test_the_plan_stands_for_the_first_partition(folder: Folder) -> None:
    plan: Plan = folder.plan()
    assert str(plan.place) == "in/0"
