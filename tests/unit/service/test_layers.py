"""The layers of a configuration: the environment over the file, flags over the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.service.configuring import LEAST, loaded, problems, with_lines


def test_the_environment_goes_over_the_file_and_flags_over_the_environment(tmp_path: Path) -> None:
    text = with_lines("chunk", "records = 1", "max_span = 1.0")
    text += "[checkpoint]\nevery_chunks = 1\n"
    environ = {"STREAM_FS_CHUNK__RECORDS": "2", "STREAM_FS_CHECKPOINT__EVERY_CHUNKS": "2"}
    configuration = loaded(tmp_path, text, environ, ["chunk.records=3"])
    assert configuration.chunk.records == 3
    assert configuration.checkpoint.every_chunks == 2
    assert configuration.chunk.max_span == 1


def test_text_from_outside_is_read_as_the_key_wants_it(tmp_path: Path) -> None:
    environ = {
        "STREAM_FS_STREAM__NAME": "123",
        "STREAM_FS_STREAM__TOPICS": '["a", "b"]',
        "STREAM_FS_KAFKA__GROUP": "true",
        "STREAM_FS_OUTPUT__TOP": "all",
        "STREAM_FS_SELECTOR__BETA": "{ fourier = 1, pixels = 2 }",
        "STREAM_FS_SELECTOR__BETA__PIXELS": "3",
        "STREAM_FS_SELECTOR__SCORE": "row_norm",
        "STREAM_FS_KAFKA__PROPERTIES__SASL_USERNAME": "42",
    }
    flags = ["kafka.properties.client.rack=a=b", "log.level=debug", "selector.decay=0.5"]
    configuration = loaded(tmp_path, LEAST, environ, flags)
    assert configuration.stream.name == "123"
    assert configuration.stream.topics == ("a", "b")
    assert configuration.kafka.group == "true"
    assert configuration.output.top == "all"
    assert configuration.params().of_view("beta", "pixels") == 3
    assert (configuration.params().score, configuration.params().decay) == ("row_norm", 0.5)
    assert configuration.kafka.properties == {"sasl.username": "42", "client.rack": "a=b"}
    assert configuration.log.level == "debug"


def test_variables_without_a_double_underscore_are_not_keys(tmp_path: Path) -> None:
    environ = {"STREAM_FS_BOOTSTRAP": "elsewhere:1", "OTHER__KEY": "1"}
    assert loaded(tmp_path, LEAST, environ) == loaded(tmp_path)


def test_the_whole_configuration_may_come_from_outside_but_for_the_views(tmp_path: Path) -> None:
    text = '[[views]]\nname = "a"\ndimension = 2\n'
    environ = {
        "STREAM_FS_STREAM__NAME": "s",
        "STREAM_FS_STREAM__TOPICS": '["t"]',
        "STREAM_FS_SELECTOR__CLUSTERS": "2",
        "STREAM_FS_KAFKA__BOOTSTRAP": "localhost:1",
    }
    assert loaded(tmp_path, text, environ).output.topic == "s.rankings"


@pytest.mark.parametrize(
    ("environ", "flags", "line"),
    [
        (
            {"STREAM_FS_CHUNK__RECORDS": "0"},
            [],
            "chunk.records: should be greater than or equal to 1, got 0 "
            "(from STREAM_FS_CHUNK__RECORDS)",
        ),
        (
            {"STREAM_FS_CHUNK__RECORDS": "many"},
            [],
            "chunk.records: should be a valid integer, got 'many' (from STREAM_FS_CHUNK__RECORDS)",
        ),
        (
            {"STREAM_FS_CHUNK__RECORD": "1"},
            [],
            "chunk.record: is not a known key; did you mean records? "
            "(from STREAM_FS_CHUNK__RECORD)",
        ),
        (
            {"STREAM_FS_CHUNKS__RECORDS": "1"},
            [],
            "chunks: is not a known key; did you mean chunk? (from STREAM_FS_CHUNKS__RECORDS)",
        ),
        (
            {"STREAM_FS_VIEWS__NAME": "a"},
            [],
            "views.name: views are declared in the file only (from STREAM_FS_VIEWS__NAME)",
        ),
        (
            {},
            ["log.level=loud"],
            "log.level: should be 'debug', 'info', 'warning' or 'error', got 'loud' (from --set)",
        ),
        ({}, ["log=debug"], "--set log: should be section.key=value"),
        ({}, ["log.level"], "--set log.level: should be section.key=value"),
    ],
)
def test_a_mistake_outside_of_the_file_names_its_origin(
    tmp_path: Path, environ: dict[str, str], flags: list[str], line: str
) -> None:
    assert problems(tmp_path, environ=environ, flags=flags) == [line]
