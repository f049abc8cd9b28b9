"""Mistakes in a configuration: each is reported with its key, and all of them at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from stream_fs.errors import InvalidConfiguration
from stream_fs.service.configuration import load
from tests.support.configurations import LEAST, loaded, problems, with_lines


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
        ("selector", "seed = -1", "selector.seed: must be a whole number of at least 0, got -1"),
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
        ("output", "top = 0", "output.top: should be a whole number of at least 1 "),
        ("output", "top = 1.5", "output.top: should be a whole number of at least 1 "),
        ("output", "top = true", "output.top: should be a whole number of at least 1 "),
        ("output", 'top = "most"', "output.top: should be a whole number of at least 1 "),
        ("output", 'format = "xml"', "output.format: should be 'json' or 'msgpack', got 'xml'"),
        ("output", 'topic = "a b"', "output.topic: should be 1 to 249 letters, digits, '.', '_' "),
        ("output", 'topic = "digits"', "output.topic: topic 'digits' is already an input topic"),
        (
            "dead_letters",
            'topic = "digits.rankings"',
            "dead_letters.topic: topic 'digits.rankings' is already the topic of the rankings",
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
        (
            "dead_letters",
            "max_open_bytes = 0",
            "dead_letters.max_open_bytes: should be greater than or equal to 1, got 0",
        ),
        ("state", 'topic = "s"', "state.topic: should contain {topic} once"),
        ("state", 'topic = "{topic}"', "state.topic: topic 'digits' is already an input topic"),
        ("state", 'topic = "{topic} s"', "state.topic: should be 1 to 249 letters, "),
        ("limits", "views = 1", "limits.views: should be at least 2, the views declared, got 1"),
        (
            "limits",
            "record_bytes = 0",
            "limits.record_bytes: should be greater than or equal to 1, got 0",
        ),
        (
            "kafka",
            "largest_message = 2000000000",
            "kafka.largest_message: should be less than or equal to 999000000, got 2000000000",
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
        ("kafka.properties", "x = [1]", "kafka.properties.x: should be a string, a number, "),
        (
            "kafka.properties",
            '"sasl.mechansim" = "PLAIN"',
            'kafka.properties."sasl.mechansim": is not a property of librdkafka',
        ),
        (
            "kafka.properties",
            '"security.protocol" = "sasl"',
            'kafka.properties."security.protocol": Invalid value "sasl"',
        ),
        (
            "kafka.properties",
            '"fetch.wait.max.ms" = "abc"',
            "kafka.properties.\"fetch.wait.max.ms\": Invalid value, got 'abc'",
        ),
        (
            "kafka.properties",
            '"fetch.wait.max.ms" = 300001',
            'kafka.properties."fetch.wait.max.ms": value 300001 is outside allowed range 0..300000',
        ),
        (
            "kafka.properties",
            'error_cb = "x"',
            "kafka.properties.error_cb: cannot be set here: ",
        ),
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
        (
            "service",
            "watchdog_seconds = 60",
            "service.watchdog_seconds: should be above kafka.transaction_timeout (60), got 60",
        ),
        (
            "kafka",
            "call_timeout = 120",
            "service.watchdog_seconds: should be above kafka.call_timeout (120), got 120",
        ),
        (
            "service",
            "grace_seconds = 120",
            "service.watchdog_seconds: should be above service.grace_seconds (120), got 120",
        ),
        (
            "service",
            "watchdog_seconds = 9.9",
            "service.watchdog_seconds: should be greater than or equal to 10, got 9.9",
        ),
        ("kafka", "call_timeout = 0", "kafka.call_timeout: should be greater than 0, got 0"),
        (
            "kafka.properties",
            '"bootstrap.servers" = "b"',
            'kafka.properties."bootstrap.servers": bootstrap.servers cannot be set: '
            "it is set by kafka.bootstrap",
        ),
        (
            "kafka.properties",
            '"group.protocol" = "classic"',
            'kafka.properties."group.protocol": group.protocol cannot be set: '
            "it is set by kafka.protocol",
        ),
        (
            "limits",
            "record_bytes = 1000001",
            "limits.record_bytes: should be at most kafka.largest_message (1000000), got 1000001",
        ),
        (
            "kafka.properties",
            '"message.max.bytes" = 5',
            'kafka.properties."message.max.bytes": message.max.bytes cannot be set: ',
        ),
        (
            "kafka.properties",
            '"batch.size" = "64k"',
            "kafka.properties.\"batch.size\": batch.size should be a whole number, got '64k'",
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
        ('["digits"]', '"digits"', 'stream.topics: should be a list, as ["a", "b"]'),
        ('["digits"]', '["a b"]', "stream.topics[0]: should be 1 to 249 letters, "),
        ('["digits"]', '["a", "a"]', "stream.topics[1]: topic 'a' is already an input topic"),
        ("clusters = 3", "", "selector.clusters: is missing"),
        (
            "clusters = 3",
            "clusters = 0",
            "selector.clusters: must be a whole number of at least 1, got 0",
        ),
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
        (
            "dimension = 6",
            "dimension = 6\nnames = [1]",
            "views[1].names: should be a list of strings",
        ),
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


def test_a_wrong_key_hides_no_disagreement_of_the_others_beside_it(tmp_path: Path) -> None:
    text = (
        LEAST.replace("dimension = 4", 'dimension = 4\ndtype = "f2"\nshape = [3]')
        .replace("clusters = 3", "lam = 0")
        .replace('topics = ["digits"]', 'topics = ["digits"]\nstart = "now"')
        + 'protocol = "new"\ncall_timeout = 500\nlargest_message = 1000\n'
        + '[kafka.properties]\nx = [1]\nacks = 1\n"no.such" = 1\n'
        + '[limits]\nviews = 1\nrecord_bytes = 0\n[output]\ntopic = "digits"\nformat = "xml"\n'
    )
    assert sorted(line.split(": ")[0] for line in problems(tmp_path, text)) == [
        'kafka.properties."no.such"',
        "kafka.properties.acks",
        "kafka.properties.x",
        "kafka.protocol",
        "limits.record_bytes",
        "limits.views",
        "output.format",
        "output.topic",
        "selector.clusters",
        "selector.lam",
        "service.watchdog_seconds",
        "stream.start",
        "views[0].dtype",
        "views[0].shape",
    ]


def test_a_ranking_too_large_is_told_beside_other_mistakes(tmp_path: Path) -> None:
    text = LEAST + 'largest_message = 10\nprotocol = "new"\n[log]\nlevel = "loud"\n'
    reported = [line.split(": ")[0] for line in problems(tmp_path, text)]
    assert reported == [
        "kafka.protocol",
        "log.level",
        "limits.record_bytes",
        "output.top",
        "kafka.largest_message",
    ]


@pytest.mark.parametrize(
    "bootstrap",
    [
        "http://broker:9092",
        "broker:port",
        "broker:0",
        "a:1,b:70000",
        pytest.param("broker:" + 5000 * "9", id="a port of 5000 digits"),
        "a b:1",
        " , ",
    ],
)
def test_what_can_be_no_broker_is_refused(tmp_path: Path, bootstrap: str) -> None:
    (found,) = problems(tmp_path, LEAST.replace("localhost:9092", bootstrap))
    assert found.startswith("kafka.bootstrap: should be host:port of one or more brokers")


@pytest.mark.parametrize(
    "bootstrap", ["broker", "a:1, b:2,", "SASL_SSL://broker:9093", "[::1]:9092", "::1", "10.0.0.1"]
)
def test_what_the_client_takes_for_a_broker_is_taken(tmp_path: Path, bootstrap: str) -> None:
    assert loaded(tmp_path, LEAST.replace("localhost:9092", bootstrap)).kafka.bootstrap == bootstrap


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
        (b"views = 1", "views: should be tables, each under its own [[views]]"),
        (b"[views]\nname = 'x'", "views: should be tables, each under its own [[views]]"),
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
