from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any, get_args

import msgpack
import numpy as np
import pytest

from stream_fs.checkpoint.fields import Plain
from stream_fs.checkpoint.manifest import read_manifest
from stream_fs.checkpoint.snapshot import (
    PART_BYTES,
    decode_snapshot,
    encode_snapshot,
    largest_manifest,
)
from stream_fs.errors import (
    ConfigurationChanged,
    CorruptSnapshot,
    InvalidParameter,
    UnknownSnapshotVersion,
)
from stream_fs.selector.parameters import Preset, View, params
from stream_fs.selector.state import State, flatten, initial_state
from stream_fs.selector.update import update
from tests.support.models import VIEWS, model_params, sample_chunk, state_content, trained_state

EXTRA: dict[str, Plain] = {
    "chosen": {"dense": [3, 1], "counts": [], "later": None},
    "dead_letters": 17,
    "note": "μ",
    "raw": b"\x00\xff",
    "exact": 0.1,
}
PRESETS = get_args(Preset)


@pytest.fixture(scope="module")
def state() -> State:
    return trained_state(model_params())


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("chunks", [0, 1, 3])
def test_a_snapshot_is_read_back(preset: Preset, sparse: bool, chunks: int) -> None:
    before = trained_state(model_params(preset), chunks, sparse=sparse)
    assert not before.views["later"].seen
    snapshot = encode_snapshot(before, 1234, EXTRA, part_bytes=4_000)

    restored = decode_snapshot(snapshot.manifest, snapshot.parts, before.params)

    assert state_content(restored.state) == state_content(before)
    assert restored.state.params == before.params
    assert restored.next_offset == 1234
    assert restored.extra == EXTRA
    assert restored.fingerprint == before.params.fingerprint
    assert encode_snapshot(restored.state, 1234, restored.extra, part_bytes=4_000) == snapshot


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("sparse", [False, True])
def test_a_restored_model_continues_to_the_same_bytes(preset: Preset, sparse: bool) -> None:
    before = trained_state(model_params(preset, decay=0.9), sparse=sparse)
    snapshot = encode_snapshot(before, 140, {})
    after = decode_snapshot(snapshot.manifest, snapshot.parts, before.params).state
    for number in (2, 3):
        before, report = update(before, sample_chunk(before.params, number, sparse=sparse))
        after, replayed = update(after, sample_chunk(after.params, number, sparse=sparse))
        assert replayed == report
        assert state_content(after) == state_content(before)


def test_every_bit_pattern_survives(state: State) -> None:
    odd = np.array([-0.0, np.nan, np.inf, -np.inf, 5e-324] + 7 * [0.0])
    odd.view(np.uint64)[1] ^= 1  # another NaN
    views = {**state.views, "dense": replace(state.views["dense"], sum=odd)}
    snapshot = encode_snapshot(replace(state, views=views), 0, {})
    restored = decode_snapshot(snapshot.manifest, snapshot.parts, state.params)
    assert restored.state.views["dense"].sum.tobytes() == odd.tobytes()


def test_memory_order_does_not_matter(state: State) -> None:
    view = state.views["counts"]
    turned = replace(view, V=np.asfortranarray(view.V), Q=np.repeat(view.Q, 2, axis=1)[:, ::2])
    views = {**state.views, "counts": turned}
    assert encode_snapshot(replace(state, views=views), 0, {}) == encode_snapshot(state, 0, {})


def test_a_restored_state_references_no_part(state: State) -> None:
    snapshot = encode_snapshot(state, 0, {})
    restored = decode_snapshot(snapshot.manifest, snapshot.parts, state.params)
    _, arrays = flatten(restored.state)
    assert all(array.flags.owndata for array in arrays.values())


@pytest.mark.parametrize("part_bytes", [3_000, 3_001, 3_007, 8_192])
def test_parts_stay_within_the_limit_and_only_the_last_is_shorter(
    state: State, part_bytes: int
) -> None:
    snapshot = encode_snapshot(state, 0, EXTRA, part_bytes=part_bytes)
    *full, last = map(len, snapshot.parts)
    assert len(full) >= 2
    assert set(full) == {part_bytes}
    assert 0 < last <= part_bytes
    assert len(snapshot.manifest) <= part_bytes
    assert state_content(
        decode_snapshot(snapshot.manifest, snapshot.parts, state.params).state
    ) == state_content(state)


def test_a_message_with_a_part_stays_below_a_megabyte() -> None:
    assert PART_BYTES + 10_000 < 1_000_000


def test_the_manifest_has_the_number_of_parts(state: State) -> None:
    snapshot = encode_snapshot(state, 77, {}, part_bytes=3_000)
    manifest = read_manifest(snapshot.manifest)
    assert manifest.parts == len(snapshot.parts)
    assert manifest.size == sum(map(len, snapshot.parts))
    assert (manifest.chunk, manifest.next_offset) == (state.chunk, 77)
    assert manifest.fingerprint == state.params.fingerprint
    assert manifest.params["clusters"] == 3


def test_the_manifest_does_not_grow_with_the_number_of_features() -> None:
    names = tuple(f"a feature with a long name {number}" for number in range(10_000))
    few = initial_state(params([View("v", 5)], 2, preset="paper"))
    many = initial_state(params([View("v", 10_000, names=names)], 2, preset="paper"))
    extra = {"chosen": {"v": list(range(10_000))}}
    grown = len(encode_snapshot(many, 0, extra).manifest) - len(
        encode_snapshot(few, 0, {}).manifest
    )
    assert abs(grown) < 100


@pytest.mark.parametrize("preset", get_args(Preset))
def test_largest_manifest_is_an_upper_bound(preset: Preset) -> None:
    views = [View("a", 70_000), View("b", 5, "unit", tuple("abcde"))]
    model = initial_state(params(views, 2, preset=preset), "s/in/0")
    most = 2**63 - 1
    used = replace(model, j=1e300, total=most, chunk=most)
    manifest = encode_snapshot(used, most, {"chosen": {"a": [1]}}).manifest
    largest = largest_manifest(used.params, used.origin)
    assert len(manifest) <= largest < len(manifest) + 20


def test_too_many_views_for_a_manifest_are_rejected() -> None:
    views = [View(f"view {number}", 1) for number in range(100)]
    with pytest.raises(InvalidParameter, match=r"100 views .* declare fewer"):
        encode_snapshot(initial_state(params(views, 2)), 0, {}, part_bytes=10_000)


def test_encoding_and_decoding_copy_a_large_state_once() -> None:
    blank = initial_state(params([View("v", 34_000, "unit")], 4))
    filled = replace(blank.views["v"], Q=np.random.default_rng(0).random((34_000, 4)))
    before = replace(blank, views={"v": filled})
    size = sum(map(len, encode_snapshot(before, 0, {}).parts))
    assert size > 20_000_000

    tracemalloc.start()
    snapshot = encode_snapshot(before, 0, {})
    encoding = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    decode_snapshot(snapshot.manifest, snapshot.parts, before.params)
    decoding = tracemalloc.get_traced_memory()[1] - encoding
    tracemalloc.stop()

    assert encoding < 1.05 * size
    # The restored state, and the blank one whose shapes it is compared with.
    assert decoding < 2.05 * size


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda parts: parts[:-1], id="the last part is missing"),
        pytest.param(lambda parts: parts[1:], id="the first part is missing"),
        pytest.param(lambda _: [], id="every part is missing"),
        pytest.param(lambda parts: [*parts, b""], id="a part too many"),
        pytest.param(lambda parts: [parts[1], parts[0], *parts[2:]], id="swapped"),
        pytest.param(lambda parts: [parts[0], parts[0], *parts[2:]], id="one of them twice"),
        pytest.param(lambda parts: [*parts[:-1], parts[-1][:-1]], id="torn"),
        pytest.param(lambda parts: [*parts[:-1], parts[-1] + b"\0"], id="too long"),
    ],
)
def test_parts_that_do_not_match_are_rejected(state: State, damage: Any) -> None:
    snapshot = encode_snapshot(state, 0, {}, part_bytes=3_000)
    with pytest.raises(CorruptSnapshot):
        decode_snapshot(snapshot.manifest, damage(list(snapshot.parts)), state.params)


def test_a_part_of_the_previous_snapshot_is_rejected(state: State) -> None:
    later, _ = update(state, sample_chunk(state.params, 9, sparse=False))
    old, new = (encode_snapshot(each, 0, {}, part_bytes=3_000) for each in (state, later))
    with pytest.raises(CorruptSnapshot, match="another snapshot"):
        decode_snapshot(new.manifest, [old.parts[0], *new.parts[1:]], state.params)


def test_another_version_is_named(state: State) -> None:
    snapshot = encode_snapshot(state, 0, {})
    newer = msgpack.packb({**msgpack.unpackb(snapshot.manifest), "v": 2, "body": None})
    with pytest.raises(UnknownSnapshotVersion, match=r"version 2.* reads version 1") as caught:
        decode_snapshot(newer, snapshot.parts, state.params)
    assert (caught.value.version, caught.value.supported) == (2, 1)


def test_another_configuration_is_rejected_line_by_line(state: State) -> None:
    snapshot = encode_snapshot(state, 0, {})
    other = params((View("dense", 13), *VIEWS[1:]), 4, beta=2.0)
    with pytest.raises(ConfigurationChanged) as caught:
        decode_snapshot(snapshot.manifest, snapshot.parts, other)
    assert caught.value.differences == (
        "dimension of view 'dense': 12 → 13",
        "clusters: 3 → 4",
        "beta: 1.0 → 2.0",
    )
    assert "\n  clusters: 3 → 4\n" in str(caught.value)
    assert "checkpoint reset" in str(caught.value)


def test_an_accepted_change_takes_effect(state: State) -> None:
    snapshot = encode_snapshot(state, 0, {})
    named = View("later", 5, names=tuple("abcde"))
    other = params((*VIEWS[:2], named), 3, seed=7, max_iterations=99)
    restored = decode_snapshot(snapshot.manifest, snapshot.parts, other)
    assert restored.state.params == other
    assert restored.fingerprint == state.params.fingerprint != other.fingerprint
    assert state_content(restored.state)[1] == state_content(state)[1]
    update(restored.state, sample_chunk(other, 2, sparse=False))
