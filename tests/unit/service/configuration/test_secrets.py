"""Secrets reach only the client."""

from __future__ import annotations

from pathlib import Path

import pytest

from stream_fs.errors import InvalidConfiguration
from tests.support.configurations import LEAST, loaded

HIDDEN = "hunter2-"


def with_properties(*lines: str) -> str:
    return LEAST + "[kafka.properties]\n" + "\n".join(lines) + "\n"


def test_secrets_reach_the_client_and_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{HIDDEN}file\n")
    text = with_properties(
        '"sasl.password" = { env = "PASSWORD" }',
        '"ssl.key.password" = { file = "key" }',
        f'"sasl.oauthbearer.client.secret" = "{HIDDEN}plain"',
        '"sasl.username" = "user"',
    )
    configuration = loaded(tmp_path, text, {"PASSWORD": f"{HIDDEN}env"})
    assert configuration.kafka_settings().properties == {
        "sasl.password": f"{HIDDEN}env",
        "ssl.key.password": f"{HIDDEN}file",
        "sasl.oauthbearer.client.secret": f"{HIDDEN}plain",
        "sasl.username": "user",
    }
    assert configuration.secrets() == {f"{HIDDEN}env", f"{HIDDEN}file", f"{HIDDEN}plain"}
    for shown in (repr(configuration), str(configuration), repr(configuration.model_dump())):
        assert HIDDEN not in shown
        assert "user" in shown


def test_a_name_that_comes_from_a_variable_is_not_cut_out_of_texts(tmp_path: Path) -> None:
    text = with_properties(
        '"sasl.username" = { env = "USER_NAME" }', '"sasl.password" = { env = "PASSWORD" }'
    )
    environ = {"USER_NAME": "digits", "PASSWORD": HIDDEN}
    configuration = loaded(tmp_path, text, environ)
    assert configuration.kafka_settings().properties["sasl.username"] == "digits"
    assert configuration.secrets() == {HIDDEN}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{ env = "NONE" }', "the environment variable NONE is not set"),
        ('{ env = "EMPTY" }', "env 'EMPTY' is empty"),
        ('{ file = "none" }', "cannot be read: No such file or directory"),
        ('{ file = "binary" }', "is not UTF-8 text"),
        (f'{{ value = "{HIDDEN}" }}', 'must be {env = "NAME"} or {file = "path"}'),
        (f'["{HIDDEN}"]', "should be a string, a number"),
    ],
)
def test_a_secret_that_cannot_be_had(tmp_path: Path, line: str, problem: str) -> None:
    (tmp_path / "binary").write_bytes(b"\xff")
    with pytest.raises(InvalidConfiguration) as caught:
        loaded(tmp_path, with_properties(f'"sasl.password" = {line}'), {"EMPTY": ""})
    assert caught.value.problems[0].startswith('kafka.properties."sasl.password": ')
    assert problem in caught.value.problems[0]
    assert HIDDEN not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        LEAST + f'sasl.password = "{HIDDEN}"\n',
        LEAST + f'properties = "sasl.password={HIDDEN}"\n',
        with_properties(f'acks = "{HIDDEN}"'),
        LEAST + f'[kafak.properties]\n"sasl.password" = "{HIDDEN}"\n',
    ],
    ids=["key", "text", "owned", "section"],
)
def test_a_secret_in_the_wrong_place_is_not_shown_in_the_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        loaded(tmp_path, text)
    assert HIDDEN not in str(caught.value)


def test_a_secret_in_a_broken_flag_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        loaded(tmp_path, LEAST, {}, [f"password={HIDDEN}"])
    assert HIDDEN not in str(caught.value)
