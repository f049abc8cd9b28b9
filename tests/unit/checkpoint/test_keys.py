from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_fs.checkpoint.keys import (
    MERGE_KEY,
    Key,
    manifest_key,
    parse_key,
    part_key,
    progress_key,
)

topics = st.from_regex(r"[A-Za-z0-9._-]{1,249}", fullmatch=True)
numbers = st.integers(0, 2**31 - 1)


@given(topics, numbers, st.integers(0, 1), numbers)
def test_a_key_tells_what_it_was_made_of(topic: str, partition: int, slot: int, part: int) -> None:
    for made, key in (
        (progress_key(topic, partition), Key(topic, partition)),
        (manifest_key(topic, partition, slot), Key(topic, partition, slot)),
        (part_key(topic, partition, slot, part), Key(topic, partition, slot, part)),
    ):
        assert parse_key(made) == key


def test_how_keys_look() -> None:
    assert progress_key("in", 3) == b"in/3/progress"
    assert manifest_key("in", 3, 1) == b"in/3/1/manifest"
    assert part_key("in", 3, 1, 12) == b"in/3/1/12"


def test_what_they_hold() -> None:
    assert Key("in", 0).holds == "progress"
    assert Key("in", 0, 1).holds == "manifest"
    assert Key("in", 0, 1, 0).holds == "part"


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
        b"\xff/3/progress",
        "in/³/progress".encode(),
        MERGE_KEY,
    ],
)
def test_any_other_key_is_none_of_ours(key: bytes) -> None:
    assert parse_key(key) is None


@given(st.binary(max_size=40))
def test_any_bytes_can_be_asked_about(key: bytes) -> None:
    parse_key(key)
