"""What the client library takes, asked without a client; and what it must not be asked."""

from __future__ import annotations

import pytest

from stream_fs.kafka.settings import refusal


@pytest.mark.parametrize("name", ["sa\udcd3l.password", "client\0.id", "", "sasl.mechansim", "é"])
def test_a_name_that_is_no_propertys_is_refused(name: str) -> None:
    """At one that cannot be written as UTF-8 the library would end the process."""
    assert refusal(name, "x") == "is not a property of librdkafka"


@pytest.mark.parametrize("value", ["x\udcd3", "a\0b", "\0"])
def test_text_that_would_not_arrive_whole_is_refused(value: str) -> None:
    assert refusal("client.id", value) == "is not text that the library could be given"


@pytest.mark.parametrize("value", ["grün", "", "a b", 3, True])
def test_other_text_is_taken(value: str | int) -> None:
    assert refusal("client.id", value) is None
