"""A comparison lets pass what is declared to be added, and nothing else."""

from __future__ import annotations

import copy
import hashlib
from typing import Any

import msgpack
import numpy as np
import pytest

from tests.compatibility.cases import RANKINGS, STATE
from tests.compatibility.comparison import differences
from tests.compatibility.formats import event_id, parsed, stripped, without_additions, written
from tests.compatibility.record import recorded

NAMES = sorted(recorded("pipeline"))


def topics(name: str) -> dict[str, list[dict[str, Any]]]:
    return copy.deepcopy(recorded("pipeline")[name]["result"]["topics"])


def later(name: str, **added: Any) -> dict[str, list[dict[str, Any]]]:
    """The topics as a later release would write them, with more fields in each ranking."""
    found = topics(name)
    digests = {}
    for record in found[RANKINGS][0]["records"]:
        format = "json" if record[3][:1] == b"{" else "msgpack"
        plain = parsed(record[3], format)
        plain["records"] |= added
        value = written(plain, format)
        digests[hashlib.sha256(record[3]).hexdigest()] = hashlib.sha256(value).hexdigest()
        record[3] = value
        record[4] = [[n, event_id(value, format) if n == "ce_id" else c] for n, c in record[4]]
    for partition in found[STATE]:
        for record in partition["records"]:
            if record[2].endswith(b"/progress"):
                progress = msgpack.unpackb(record[3])
                if progress.get("digest"):
                    progress["digest"] = digests[progress["digest"]]
                record[3] = msgpack.packb(progress)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_what_is_declared_to_be_added_is_taken_away_everywhere(name: str) -> None:
    found = later(name, imputed={})
    assert found != topics(name)
    assert without_additions(found, rankings=RANKINGS, states=[STATE]) == topics(name)


def test_what_is_imputed_has_rows_and_a_weight() -> None:
    value = topics("default")[RANKINGS][0]["records"][0][3]
    plain = parsed(value, "json")
    plain["records"]["imputed"] = {"size": {"rows": 3, "weight": 0.5}}
    assert stripped(written(plain, "json"), "json") == value


@pytest.mark.parametrize(
    "imputed",
    [
        {"weight": {"rows": 3, "weight": 0.5}},
        {"size": {"rows": 3.0, "weight": 0.5}},
        {"size": {"rows": -1, "weight": 0.5}},
        {"size": {"rows": 1000, "weight": 0.5}},
        {"size": {"rows": 3, "weight": 1}},
        {"size": {"rows": 3, "weight": -0.5}},
        {"size": {"rows": 3, "weight": 0.5, "more": 1}},
        {"size": {"rows": 3}},
    ],
)
def test_another_form_of_it_is_refused(imputed: dict[str, Any]) -> None:
    plain = parsed(topics("default")[RANKINGS][0]["records"][0][3], "json")
    plain["records"]["imputed"] = imputed
    with pytest.raises(ValueError, match="not as declared"):
        stripped(written(plain, "json"), "json")


def test_another_field_stays_and_is_a_difference() -> None:
    found = without_additions(later("default", more=1), rankings=RANKINGS, states=[STATE])
    assert found != topics("default")


def test_a_ranking_with_another_id_is_refused() -> None:
    found = topics("default")
    found[RANKINGS][0]["records"][0][4] = [["ce_id", b"1-0"], ["content-type", b"application/json"]]
    with pytest.raises(ValueError, match="id"):
        without_additions(found, rankings=RANKINGS, states=[STATE])


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ([1, 2], [1, 2, 3]),
        (1, 1.0),
        (1.0, 1.001),
        (1000.0, 1001.0),
        (0.0, float("nan")),
        ("a", "b"),
        (np.zeros(3), np.zeros(4)),
        (np.zeros(3), np.zeros(3, np.float32)),
        (np.array([0.0, 100.0]), np.array([0.1, 100.0])),
        (np.array([1, 2]), np.array([1, 3])),
        (np.array([0.0, 1.0]), np.array([np.nan, 1.0])),
    ],
)
def test_differences_are_found(before: Any, now: Any) -> None:
    assert list(differences([before], [now], 1e-4))
    assert not list(differences([before], [copy.deepcopy(before)], 0.0))


def test_numbers_are_equal_to_a_tolerance() -> None:
    before = {"a": 1000.0, "b": np.array([0.0, 100.0])}
    now = {"a": 1000.05, "b": np.array([0.005, 100.0])}
    assert not list(differences(before, now, 1e-4))
    assert len(list(differences(before, now, 1e-6))) == 2
