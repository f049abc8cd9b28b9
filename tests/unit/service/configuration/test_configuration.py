"""The configuration: its defaults, and what it means to the pipeline and to the clients."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from stream_fs.kafka.settings import Rebalance
from tests.support.configurations import LEAST, loaded, with_lines


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
max_open_bytes = 5000
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
call_timeout = 7
largest_message = 2000
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
    assert (dead_letters.max_open_bytes, dead_letters.largest) == (5000, 2000 + 65_536)
    assert settings.part_bytes == 2000
    fourier, pixels = settings.views
    assert (fourier.dtype, fourier.transform) == ("float64", "unit")
    assert (pixels.dtype, pixels.transform) == ("float32", "none"), "the preset's transform"
    assert settings.params.views[0].names == ("low", "high")
    assert (settings.params.seed, settings.params.lam) == (7, 4)
    assert settings.params.per_view("beta", "pixels") == 2
    assert configuration.views[1].shape == (2, 3)

    kafka = configuration.kafka_settings()
    assert (kafka.bootstrap, kafka.group) == ("one:1,two:2", "group")
    assert kafka.rebalance is Rebalance.CONSUMER
    assert (kafka.transaction_timeout, kafka.timeout) == (15, 7)
    assert kafka.largest_message == 2000
    assert kafka.properties == {"client.rack": "r", "check.crcs": True}


@pytest.mark.parametrize(
    ("written", "expected"), [('"all"', None), ("7", 7), ("0.1", 0.1), ("1.0", 1.0)]
)
def test_top_is_a_count_a_share_or_all(tmp_path: Path, written: str, expected: object) -> None:
    settings = loaded(tmp_path, with_lines("output", f"top = {written}")).stream_settings()
    assert settings.output_top == expected
    assert type(settings.output_top) is type(expected)


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
