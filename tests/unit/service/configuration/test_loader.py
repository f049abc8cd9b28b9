"""The layers of a configuration: the environment over the file, flags over the environment."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stream_fs.service.configuration.loader import OTHER_VARIABLES
from tests.deploy.files import ROOT
from tests.support.configurations import LEAST, loaded, problems, with_lines

IN_THE_FILE = "views can only be declared in the file, each in its own [[views]] table"
ONE_EACH = (
    "set each property by its own name: `--set kafka.properties.linger.ms=5`, or the variable "
    "STREAM_FS_KAFKA__PROPERTIES__LINGER_MS=5"
)
SECTION_KEY = (
    "should be section.key=value, for example chunk.records=200; sections are stream, selector, "
    "chunk, checkpoint, merge, output, dead_letters, state, limits, kafka, service, log"
)


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
    assert configuration.params().per_view("beta", "pixels") == 3
    assert (configuration.params().score, configuration.params().decay) == ("row_norm", 0.5)
    assert configuration.kafka.properties == {"sasl.username": "42", "client.rack": "a=b"}
    assert configuration.log.level == "debug"


def test_variables_of_others_are_not_keys(tmp_path: Path) -> None:
    environ = {"STREAM_FS_BOOTSTRAP": "elsewhere:1", "OTHER__KEY": "1"}
    assert loaded(tmp_path, LEAST, environ) == loaded(tmp_path)


def test_every_variable_that_is_read_somewhere_is_known() -> None:
    files = [ROOT / "tests/conftest.py", ROOT / "tests/support/cores.py"]
    files += [path for path in (ROOT / "deploy").rglob("*") if path.suffix in (".yaml", ".md")]
    files += (ROOT / "stream_fs").rglob("*.py")
    texts = [path.read_text(encoding="utf-8") for path in files]
    found = {name for text in texts for name in re.findall(r"\bSTREAM_FS_[A-Z_]+\b", text)}
    named = {name for name in found if "__" not in name}
    assert named == OTHER_VARIABLES


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("STREAM_FS_KAFKA_BOOTSTRAP", "did you mean STREAM_FS_KAFKA__BOOTSTRAP?"),
        ("STREAM_FS_DEAD_LETTERS_MAX_RATIO", "did you mean STREAM_FS_DEAD_LETTERS__MAX_RATIO?"),
        ("STREAM_FS_CHUNK_RECORD", "did you mean STREAM_FS_CHUNK__RECORDS?"),
        ("STREAM_FS_CONFG", "did you mean STREAM_FS_CONFIG?"),
        ("STREAM_FS_SERVICE_PORT", "did you mean STREAM_FS_SERVICE__PORT?"),
        ("STREAM_FS_X", "keys are STREAM_FS_SECTION__KEY"),
        ("STREAM_FS__SEED", "keys are STREAM_FS_SECTION__KEY"),
        ("STREAM_FS_VIEWS", IN_THE_FILE),
    ],
)
def test_a_variable_that_nothing_reads_is_a_mistake(tmp_path: Path, name: str, hint: str) -> None:
    (found,) = problems(tmp_path, LEAST, {name: "1"})
    assert found == f"{name}: is not a known variable; {hint}"


def test_what_kubernetes_tells_of_services_is_no_mistake(tmp_path: Path) -> None:
    environ = {
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "STREAM_FS_SERVICE_HOST": "10.0.0.2",
        "STREAM_FS_SERVICE_PORT": "9108",
        "STREAM_FS_SERVICE_PORT_HTTP": "9108",
        "STREAM_FS_KAFKA_BOOTSTRAP_PORT": "tcp://10.0.0.3:9092",
        "STREAM_FS_PORT_9108_TCP_ADDR": "10.0.0.2",
    }
    assert loaded(tmp_path, LEAST, environ) == loaded(tmp_path)
    (found,) = problems(tmp_path, LEAST, {**environ, "STREAM_FS_KAFKA_BOOTSTRAP": "b"})
    assert found.startswith("STREAM_FS_KAFKA_BOOTSTRAP: ")


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
            f"views.name: {IN_THE_FILE} (from STREAM_FS_VIEWS__NAME)",
        ),
        (
            {},
            ["log.level=loud"],
            "log.level: should be 'debug', 'info', 'warning' or 'error', got 'loud' (from --set)",
        ),
        ({}, ["log=debug"], f"--set log: {SECTION_KEY}"),
        ({}, ["log.level"], f"--set log.level: {SECTION_KEY}"),
        ({}, ["kafka.properties={}"], f"--set kafka.properties: {ONE_EACH}"),
        (
            {"STREAM_FS_KAFKA__PROPERTIES": "{}"},
            [],
            f"kafka.properties: {ONE_EACH} (from STREAM_FS_KAFKA__PROPERTIES)",
        ),
        ({}, ["views=[]"], f"--set views: {IN_THE_FILE}"),
        ({}, ["views"], f"--set views: {IN_THE_FILE}"),
        ({}, ["views.a.dimension=3"], f"views.a.dimension: {IN_THE_FILE} (from --set)"),
    ],
)
def test_a_mistake_outside_of_the_file_names_its_origin(
    tmp_path: Path, environ: dict[str, str], flags: list[str], line: str
) -> None:
    assert problems(tmp_path, environ=environ, flags=flags) == [line]
