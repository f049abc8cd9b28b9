"""The configuration as a file: the example can be used, and what is shown is what is in effect."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stream_fs.service.configuration import load
from stream_fs.service.configuration.rendering import example, shown
from tests.support.configurations import LEAST, loaded

COMMENTED_KEY = re.compile(r"^# (\w+ = .*)$", re.MULTILINE)


def test_the_example_can_be_used(tmp_path: Path) -> None:
    configuration = loaded(tmp_path, example())
    assert configuration.stream.name == "digits"


@pytest.mark.parametrize("line", COMMENTED_KEY.findall(example()))
def test_every_comment_of_the_example_can_be_used(tmp_path: Path, line: str) -> None:
    (tmp_path / "names.txt").write_text("".join(f"f{index}\n" for index in range(76)))
    text = example().replace(f"# {line}\n", f"{line}\n", 1)
    loaded(tmp_path, text, {"KAFKA_PASSWORD": "x"})


def test_the_defaults_of_the_example_are_the_defaults(tmp_path: Path) -> None:
    explained = {"transform", "names", "shape", "max_span", "properties"}
    text = example()
    for line in COMMENTED_KEY.findall(text):
        if line.split()[0] not in explained:
            text = text.replace(f"# {line}\n", f"{line}\n", 1)
    assert loaded(tmp_path, text) == loaded(tmp_path, example())


def test_what_is_shown_is_in_effect(tmp_path: Path) -> None:
    text = LEAST.replace(
        "dimension = 6", 'dimension = 6\nnames = ["a b", "\\"", "\\\\", "ä", "\\u007f", "\\n"]'
    ).replace(
        "clusters = 3", 'clusters = 3\npreset = "paper"\neta = { fourier = 0, pixels = 1e-7 }'
    )
    text += '[kafka.properties]\n"client.rack" = "r"\n"check.crcs" = false\n[chunk]\nmax_span = 9\n'
    configuration = loaded(tmp_path, text, {"STREAM_FS_OUTPUT__TOP": "0.25"})
    again = loaded(tmp_path, shown(configuration))
    assert again.stream_settings() == configuration.stream_settings()
    assert again.kafka_settings() == configuration.kafka_settings()
    assert (again.service, again.log) == (configuration.service, configuration.log)
    assert shown(again) == shown(configuration)


@pytest.mark.parametrize(("preset", "transform"), [("default", "minmax"), ("paper", "none")])
def test_the_transform_of_the_preset_is_shown(tmp_path: Path, preset: str, transform: str) -> None:
    text = LEAST.replace("dimension = 6", 'dimension = 6\ntransform = "unit"')
    views = loaded(tmp_path, text.replace("clusters = 3", f'clusters = 3\npreset = "{preset}"'))
    first, second = shown(views).split("[[views]]")[1:]
    assert f'\ntransform = "{transform}"\n' in first
    assert '\ntransform = "unit"\n' in second


def test_secrets_are_shown_by_reference_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("hunter2-file")
    path = tmp_path / "stream.toml"
    path.write_text(
        LEAST + "[kafka.properties]\n"
        '"sasl.password" = { env = "PASSWORD" }\n'
        '"ssl.key.password" = { file = "key" }\n'
        '"ssl.keystore.password" = "hunter2-plain"\n'
    )
    text = shown(load(path, {"PASSWORD": "hunter2-env"}))
    assert "hunter2" not in text
    assert '"sasl.password" = { env = "PASSWORD" }' in text
    assert '"ssl.key.password" = { file = "key" }' in text
    assert '"ssl.keystore.password" = "<redacted>"' in text
