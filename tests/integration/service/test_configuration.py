"""A changed configuration is refused if incompatible with the model, else used."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stream_fs.errors import ConfigurationChanged
from stream_fs.pipeline import events
from tests.integration.service.conftest import MakeMember
from tests.integration.service.stream import CHUNK, DIMENSIONS, Stream, chunks, declared
from tests.integration.service.undisturbed import assert_undisturbed


def test_an_incompatible_configuration_is_refused(stream: Stream, member: MakeMember) -> None:
    stream.feed(chunks(2))
    first = member(stream)
    first.completes(2)
    first.kill()
    for changes, differences in REFUSED:
        changed = member(stream, changes)
        with pytest.raises(ConfigurationChanged) as caught:
            changed.runs()
        changed.kill()
        assert set(differences) <= set(caught.value.differences), caught.value
        assert "checkpoint reset" in str(caught.value)
    stream.feed(chunks(3)[-CHUNK:])
    again = member(stream)
    again.completes(3)
    assert_undisturbed(stream, 3)


REFUSED: list[tuple[dict[str, Any], list[str]]] = [
    ({"selector.clusters": 3}, ["clusters: 2 → 3"]),
    ({"views": declared(a={"dimension": 7})}, ["dimension of view 'a': 6 → 7"]),
    ({"views": declared(b={"transform": "unit"})}, ["transform of view 'b': 'minmax' → 'unit'"]),
    ({"selector.preset": "paper"}, ["preset: 'default' → 'paper'"]),
]


def test_names_and_output_may_change(stream: Stream, member: MakeMember) -> None:
    stream.feed(chunks(2))
    first = member(stream)
    first.completes(2)
    first.kill()
    before = stream.rankings()[stream.only]
    stream.feed(chunks(3)[-CHUNK:])
    names = [f"feature {number}" for number in range(DIMENSIONS["b"])]
    second = member(stream, {"views": declared(b={"names": names}), "output.top": 2})
    second.completes(3)
    (restored,) = second.of(events.Restored)
    assert (restored.chunk, restored.behind) == (1, 1)
    *earlier, last = stream.rankings()[stream.only]
    assert earlier == before
    ranking = json.loads(last.value or b"")
    assert ranking["sequence"] == 3
    assert {view["name"]: len(view["features"]) for view in ranking["views"]} == {"a": 2, "b": 2}
    (named,) = [view for view in ranking["views"] if view["name"] == "b"]
    assert all(each["name"] == f"feature {each['index']}" for each in named["features"])
