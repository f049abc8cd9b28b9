"""The configuration: defaults, layers, every kind of mistake, and several of them at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from stream_fs.errors import InvalidConfiguration
from stream_fs.kafka.settings import Rebalance
from stream_fs.service.configuration import load
from tests.unit.service.configuring import LEAST, loaded, with_lines


def problems(folder: Path, text: str = LEAST, **more: object) -> list[str]:
    with pytest.raises(InvalidConfiguration) as caught:
        loaded(folder, text, **more)  # type: ignore[arg-type]  # handed through
    return list(caught.value.problems)


def test_the_least_configuration_gets_every_default(tmp_path: Path) -> None:
    configuration = loaded(tmp_path)
    assert configuration.output.topic == "digits.rankings"
    assert configuration.dead_letters.topic == "digits.dead-letters"
    assert configuration.kafka.group == "digits"
    assert configuration.kafka.protocol == "cooperative"
    assert configuration.service.port == 9108
    assert configuration.service.grace_seconds == 20
    assert (configuration.log.format, configuration.log.level) == ("text", "info")


def test_the_pipeline_is_told_everything(tmp_path: Path) -> None:
    text = """
[stream]
name = "digits"
topics = ["a", "b"]
format = "json"
start = "latest"
[[views]]
name = "fourier"
dimension = 2
dtype = "float64"
transform = "unit"
names = ["low", "high"]
[[views]]
name = "pixels"
dimension = 6
shape = [2, 3]
[selector]
clusters = 3
preset = "paper"
seed = 7
lam = 4
beta = { fourier = 1.0, pixels = 2.0 }
[chunk]
records = 50
max_span = 1.5
[checkpoint]
every_chunks = 4
[output]
topic = "out"
top = 0.5
format = "msgpack"
[dead_letters]
topic = "dead"
policy = "skip"
max_ratio = 0.25
tolerated = 3
max_open = 30
[state]
topic = "state-of-{topic}"
[limits]
record_bytes = 1000
views = 2
[kafka]
bootstrap = "one:1,two:2"
group = "group"
protocol = "consumer"
transaction_timeout = 15
properties = { "client.rack" = "r", "check.crcs" = true }
"""
    configuration = loaded(tmp_path, text)
    settings = configuration.stream_settings()
    assert settings.stream == "digits"
    assert (settings.record_format, settings.start) == ("json", "latest")
    assert settings.state_topics == {"a": "state-of-a", "b": "state-of-b"}
    assert (settings.rankings_topic, settings.dead_letter_topic) == ("out", "dead")
    assert (settings.chunk_records, settings.chunk_max_span) == (50, 1500)
    assert (settings.checkpoint_every, settings.output_top) == (4, 0.5)
    assert settings.output_format == "msgpack"
    assert (settings.limits.record_bytes, settings.limits.views) == (1000, 2)
    dead_letters = settings.dead_letters
    assert (dead_letters.policy, dead_letters.max_ratio) == ("skip", 0.25)
    assert (dead_letters.tolerated, dead_letters.max_open) == (3, 30)
    fourier, pixels = settings.views
    assert (fourier.dtype, fourier.transform) == ("float64", "unit")
    assert (pixels.dtype, pixels.transform) == ("float32", "none"), "the preset's transform"
    assert settings.params.views[0].names == ("low", "high")
    assert (settings.params.seed, settings.params.lam) == (7, 4)
    assert settings.params.of_view("beta", "pixels") == 2
    assert configuration.views[1].shape == (2, 3)

    kafka = configuration.kafka_settings()
    assert (kafka.bootstrap, kafka.group) == ("one:1,two:2", "group")
    assert kafka.rebalance is Rebalance.CONSUMER
    assert kafka.transaction_timeout == 15
    assert kafka.properties == {"client.rack": "r", "check.crcs": True}


@pytest.mark.parametrize(
    ("written", "told"), [('"all"', None), ("7", 7), ("0.1", 0.1), ("1.0", 1.0)]
)
def test_top_is_a_count_a_share_or_all(tmp_path: Path, written: str, told: object) -> None:
    settings = loaded(tmp_path, with_lines("output", f"top = {written}")).stream_settings()
    assert settings.output_top == told
    assert type(settings.output_top) is type(told)


@pytest.mark.parametrize(
    ("protocol", "rebalance"),
    [("eager", Rebalance.EAGER), ("cooperative", Rebalance.COOPERATIVE)],
)
def test_protocols(tmp_path: Path, protocol: str, rebalance: Rebalance) -> None:
    configuration = loaded(tmp_path, with_lines("kafka", f'protocol = "{protocol}"'))
    assert configuration.kafka_settings().rebalance is rebalance


def test_names_of_features_come_from_a_file_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("ä\nb\nc\nd\n", encoding="utf-8")
    text = LEAST.replace("dimension = 4", 'dimension = 4\nnames = "names.txt"')
    assert loaded(tmp_path, text).views[0].names == ("ä", "b", "c", "d")


def test_a_configuration_cannot_be_changed(tmp_path: Path) -> None:
    configuration = loaded(tmp_path)
    with pytest.raises(ValidationError, match="frozen"):
        configuration.chunk.records = 1
    with pytest.raises(ValidationError, match="frozen"):
        configuration.chunk = configuration.chunk


# --- layers ---------------------------------------------------------------------------------------


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


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("section", "line", "problem"),
    [
        ("stream", 'start = "now"', "stream.start: should be 'earliest' or 'latest', got 'now'"),
        ("stream", 'format = "xml"', "stream.format: should be 'msgpack' or 'json', got 'xml'"),
        ("stream", 'nmae = "x"', "stream.nmae: is not a known key; did you mean name?"),
        ("selector", "lam = 1", "selector.lam: must be a number above 1, got 1"),
        ("selector", "lamda = 3", "selector.lamda: is not a known key; did you mean lam?"),
        ("selector", "views = 3", "selector.views: is not a known key; known are "),
        (
            "selector",
            'preset = "best"',
            "selector.preset: must be one of default, paper, classical, got 'best'",
        ),
        ("selector", "seed = -1", "selector.seed: must be a whole number from 0, got -1"),
        (
            "selector",
            "beta = { fourier = 1 }",
            "selector.beta: must name every view once: expected ['fourier', 'pixels'], "
            "got ['fourier'], got {'fourier': 1}",
        ),
        (
            "selector",
            "min_iterations = 9\nmax_iterations = 8",
            "selector.max_iterations: max_iterations (8) is below min_iterations (9)",
        ),
        ("chunk", "records = 0", "chunk.records: should be greater than or equal to 1, got 0"),
        ("chunk", "records = 1.5", "chunk.records: should be a valid integer, got 1.5"),
        ("chunk", "records = true", "chunk.records: should be a valid integer, got True"),
        ("chunk", 'records = "5"', "chunk.records: should be a valid integer, got '5'"),
        ("chunk", "max_span = 0", "chunk.max_span: should be greater than 0, got 0"),
        ("chunk", "max_span = nan", "chunk.max_span: should be a finite number, got nan"),
        (
            "checkpoint",
            "every_chunks = 0",
            "checkpoint.every_chunks: should be greater than or equal to 1, got 0",
        ),
        ("output", "top = 0", "output.top: should be a whole number from 1 "),
        ("output", "top = 1.5", "output.top: should be a whole number from 1 "),
        ("output", "top = true", "output.top: should be a whole number from 1 "),
        ("output", 'top = "most"', "output.top: should be a whole number from 1 "),
        ("output", 'format = "xml"', "output.format: should be 'msgpack' or 'json', got 'xml'"),
        ("output", 'topic = "a b"', "output.topic: should be 1 to 249 letters, digits, '.', '_' "),
        ("output", 'topic = "digits"', "output.topic: topic 'digits' is an input topic already"),
        (
            "dead_letters",
            'topic = "digits.rankings"',
            "dead_letters.topic: topic 'digits.rankings' is the topic of the rankings already",
        ),
        (
            "dead_letters",
            'policy = "drop"',
            "dead_letters.policy: should be 'dead_letter', 'skip' or 'fail', got 'drop'",
        ),
        (
            "dead_letters",
            "max_ratio = 1.5",
            "dead_letters.max_ratio: should be less than or equal to 1, got 1.5",
        ),
        (
            "dead_letters",
            "tolerated = -1",
            "dead_letters.tolerated: should be greater than or equal to 0, got -1",
        ),
        (
            "dead_letters",
            "max_open = 0",
            "dead_letters.max_open: should be greater than or equal to 1, got 0",
        ),
        ("state", 'topic = "s"', "state.topic: should contain {topic} once"),
        ("state", 'topic = "{topic}"', "state.topic: topic 'digits' is an input topic already"),
        ("state", 'topic = "{topic} s"', "state.topic: should be 1 to 249 letters, "),
        ("limits", "views = 1", "limits.views: should be at least 2, the views declared, got 1"),
        (
            "limits",
            "record_bytes = 0",
            "limits.record_bytes: should be greater than or equal to 1, got 0",
        ),
        (
            "kafka",
            'protocol = "new"',
            "kafka.protocol: should be 'eager', 'cooperative' or 'consumer', got 'new'",
        ),
        (
            "kafka",
            "transaction_timeout = 0",
            "kafka.transaction_timeout: should be greater than 0, got 0",
        ),
        ("kafka", "properties = 1", "kafka.properties: should be a table"),
        (
            "kafka.properties",
            '"enable.auto.commit" = true',
            'kafka.properties."enable.auto.commit": enable.auto.commit cannot be set: ',
        ),
        ("kafka.properties", "x = [1]", "kafka.properties.x: should be a text, a number, "),
        (
            "service",
            "port = 70000",
            "service.port: should be less than or equal to 65535, got 70000",
        ),
        (
            "service",
            "grace_seconds = -1",
            "service.grace_seconds: should be greater than or equal to 0, got -1",
        ),
        ("log", 'format = "xml"', "log.format: should be 'text' or 'json', got 'xml'"),
        ("logs", 'level = "info"', "logs: is not a known key; did you mean log?"),
    ],
)
def test_a_mistake_is_told_with_key_value_and_what_is_allowed(
    tmp_path: Path, section: str, line: str, problem: str
) -> None:
    (found,) = problems(tmp_path, with_lines(section, line))
    assert found.startswith(problem)


@pytest.mark.parametrize(
    ("replaced", "by", "problem"),
    [
        ('name = "digits"\n', "", "stream.name: is missing"),
        ('name = "digits"', 'name = ""', "stream.name: should be 1 to 249 letters, "),
        ('name = "digits"', f'name = "{"x" * 201}"', "stream.name: should have at most 200 char"),
        ('["digits"]', "[]", "stream.topics: should have at least 1 item"),
        ('["digits"]', '"digits"', "stream.topics: should be a valid tuple, got 'digits'"),
        ('["digits"]', '["a b"]', "stream.topics[0]: should be 1 to 249 letters, "),
        ('["digits"]', '["a", "a"]', "stream.topics[1]: topic 'a' is an input topic already"),
        ("clusters = 3", "", "selector.clusters: is missing"),
        ("clusters = 3", "clusters = 0", "selector.clusters: must be a whole number from 1, got 0"),
        ('bootstrap = "localhost:9092"', "", "kafka.bootstrap: is missing"),
        ('bootstrap = "localhost:9092"', 'bootstrap = ""', "kafka.bootstrap: should have at least"),
        ("dimension = 4", "", "views[0].dimension: is missing"),
        ("dimension = 4", "dimension = 0", "views[0].dimension: should be greater than or equal"),
        ("dimension = 4", "dimension = 4\ndtyp = 1", "views[0].dtyp: is not a known key; did you"),
        ("dimension = 4", 'dimension = 4\ndtype = "f2"', "views[0].dtype: should be 'float32' or"),
        ("dimension = 6", 'dimension = 6\ntransform = "x"', "views[1].transform: should be 'minm"),
        (
            "dimension = 6",
            'dimension = 6\nnames = ["a"]',
            "views[1].names: has 1 names for 6 features of 'pixels'",
        ),
        ("dimension = 6", 'dimension = 6\nnames = "no.txt"', "views[1].names: file "),
        ("dimension = 6", "dimension = 6\nnames = [1]", "views[1].names: should be a list of text"),
        (
            "dimension = 6",
            "dimension = 6\nshape = [2, 2]",
            "views[1].shape: [2, 2] has 4 places for 6 features of 'pixels'",
        ),
        ('"pixels"', '"fourier"', "views[1].name: 'fourier' is declared twice"),
    ],
)
def test_a_mistake_in_what_is_needed(tmp_path: Path, replaced: str, by: str, problem: str) -> None:
    assert replaced in LEAST
    (found,) = problems(tmp_path, LEAST.replace(replaced, by, 1))
    assert found.startswith(problem)


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    text = (
        with_lines("selector", "lam = 0", "decay = 2", "neighbors = 3")
        .replace("dimension = 4", "dimension = 0")
        .replace('["digits"]', "[1]")
        + '[output]\ntop = 0\ntopic = "!"\n[limits]\nviews = 0\n[kafka.properties]\nacks = 1\n'
        + "[surprise]\n"
    )
    found = problems(tmp_path, text, environ={"STREAM_FS_LOG__LEVEL": "loud"})
    assert sorted(line.split(":")[0] for line in found) == [
        "kafka.properties.acks",
        "limits.views",
        "log.level",
        "output.top",
        "output.topic",
        "selector.decay",
        "selector.lam",
        "selector.neighbors",
        "stream.topics[0]",
        "surprise",
        "views[0].dimension",
    ]


def test_an_empty_file_is_told_all_that_is_needed(tmp_path: Path) -> None:
    assert problems(tmp_path, "") == [
        "stream.name: is missing",
        "stream.topics: is missing",
        "views: should have at least 1 item, got []",
        "selector.clusters: is missing",
        "kafka.bootstrap: is missing",
    ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read: No such file"),
        (b"[stream", "is not TOML: Expected ']'"),
        (b"\xff", "is not UTF-8"),
        (b"stream = 1", "stream: should be a table"),
        (b"views = 1", "views: should be a valid tuple, got 1"),
    ],
)
def test_a_file_that_is_not_a_configuration(
    tmp_path: Path, content: bytes | None, problem: str
) -> None:
    path = tmp_path / "stream.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidConfiguration) as caught:
        load(path, {})
    assert problem in str(caught.value)
