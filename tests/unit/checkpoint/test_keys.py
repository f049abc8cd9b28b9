from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_fs.checkpoint.keys import LEGACY_MERGE_KEY, Key, Owner, StateKeys, parse_key

names = st.from_regex(r"[A-Za-z0-9._-]{1,249}", fullmatch=True)
numbers = st.integers(0, 2**31 - 1)
groups = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)
owners = st.none() | st.builds(Owner, names, groups)
OWNER = Owner("digits", "g/1")


@given(owners, names, numbers, st.integers(0, 1), numbers)
def test_a_key_is_parsed_into_its_components(
    owner: Owner | None, topic: str, partition: int, slot: int, part: int
) -> None:
    keys = StateKeys(owner, topic, partition)
    for encoded, key in (
        (keys.progress, Key(keys)),
        (keys.manifest(slot), Key(keys, slot)),
        (keys.part(slot, part), Key(keys, slot, part)),
    ):
        assert parse_key(encoded) == key


@given(owners, owners, names, names, numbers, numbers)
def test_different_partitions_and_owners_have_different_keys(
    one: Owner | None, other: Owner | None, topic: str, second: str, here: int, there: int
) -> None:
    first, last = StateKeys(one, topic, here), StateKeys(other, second, there)
    encoded = {first.progress, first.manifest(0), first.part(0, 0)}
    if one is not None:
        encoded.add(one.merge_key)
    again = {last.progress, last.manifest(0), last.part(0, 0), LEGACY_MERGE_KEY}
    assert first == last or encoded.isdisjoint(again)


def test_bytes_of_keys() -> None:
    keys = StateKeys(OWNER, "in", 3)
    assert keys.progress == b"digits/g%2F1/in/3/progress"
    assert keys.manifest(1) == b"digits/g%2F1/in/3/1/manifest"
    assert keys.part(1, 12) == b"digits/g%2F1/in/3/1/12"
    assert OWNER.merge_key == b"digits/g%2F1/merge/progress"


def test_bytes_of_legacy_keys() -> None:
    keys = StateKeys(None, "in", 3)
    assert keys.progress == b"in/3/progress"
    assert keys.manifest(1) == b"in/3/1/manifest"
    assert keys.part(1, 12) == b"in/3/1/12"


def test_content_of_a_key() -> None:
    keys = StateKeys(OWNER, "in", 0)
    assert Key(keys).content == "progress"
    assert Key(keys, 1).content == "manifest"
    assert Key(keys, 1, 0).content == "part"


@pytest.mark.parametrize(
    "key",
    [
        b"",
        b"in",
        b"in/3",
        b"in/3/",
        b"in/3/progress/",
        b"in/3/progress\n",
        b"in/03/progress",
        b"in/-1/progress",
        b"in/3/2/manifest",
        b"in/3/1/",
        b"in/3/1/01",
        b"in/3/1/x",
        b"in/3/1/1/1",
        b"/3/progress",
        b"a/b/3/progress",
        b"a/b/c/d/3/progress",
        b"a/%41/in/3/progress",  # not as it would have been written
        b"a/%ff/in/3/progress",
        b"a/%/in/3/progress",
        b"\xff/3/progress",
        "in/³/progress".encode(),
        LEGACY_MERGE_KEY,
        OWNER.merge_key,
    ],
)
def test_other_keys_are_not_parsed(key: bytes) -> None:
    assert parse_key(key) is None


@given(st.binary(max_size=40))
def test_any_bytes_can_be_parsed(key: bytes) -> None:
    parse_key(key)
