"""Hostile configurations that were faults once."""

from __future__ import annotations

from pathlib import Path

import pytest

from stream_fs.errors import (
    InvalidConfiguration,
)
from stream_fs.service.configuration import load
from tests.support.configurations import LEAST


@pytest.mark.parametrize(
    "text",
    [
        LEAST + "[chunk]\nrecords = " + "[" * 5000 + "]" * 5000,
        LEAST + "[chunk]\nrecords" + ".a" * 3000 + " = 1\n",
        LEAST + "[chunk]\nrecords = " + "1" * 5000,
    ],
    ids=["lists", "tables", "digits"],
)
def test_a_configuration_that_is_too_deep_or_too_long(tmp_path: Path, text: str) -> None:
    path = tmp_path / "stream.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidConfiguration, match=r"stream\.toml"):
        load(path, {})


@pytest.mark.parametrize(
    "variable",
    [
        {"STREAM_FS_CHUNK__RECORDS": "1" * 5000},
        {"STREAM_FS_CHUNK__RECORDS": "[" * 5000},
        {"STREAM_FS_CHUNK__RECORDS": "{a" + ".a" * 3000 + "=1}"},
        {"STREAM_FS_CHUNK" + "__A" * 3000: "1"},
    ],
)
def test_a_variable_that_is_too_deep_or_too_long(tmp_path: Path, variable: dict[str, str]) -> None:
    path = tmp_path / "stream.toml"
    path.write_text(LEAST, encoding="utf-8")
    with pytest.raises(InvalidConfiguration):
        load(path, variable)


def test_a_file_of_names_without_an_end(tmp_path: Path) -> None:
    path = tmp_path / "stream.toml"
    path.write_text(LEAST.replace("dimension = 4", 'dimension = 4\nnames = "/dev/zero"'))
    with pytest.raises(InvalidConfiguration, match=r"more than \d+ bytes"):
        load(path, {})
