from __future__ import annotations

import io
import os

import pytest
from rich.console import Console

from stream_fs.demo.dataset import DemoStream
from stream_fs.demo.subprocesses import CommandRunner, without_configuration
from tests.support.demo import ADDRESS


def test_configuration_of_the_user_does_not_reach_the_commands(
    stream: DemoStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAM_FS_CORE", "numpy")
    monkeypatch.setenv("STREAM_FS_KAFKA__BOOTSTRAP", "prod:9092")
    monkeypatch.setenv("STREAM_FS_KAFKA__PROPERTIES__SASL_PASSWORD", "secret")
    environ = without_configuration(os.environ)
    assert os.environ.items() - environ.items() == {
        ("STREAM_FS_KAFKA__BOOTSTRAP", "prod:9092"),
        ("STREAM_FS_KAFKA__PROPERTIES__SASL_PASSWORD", "secret"),
    }
    commands = CommandRunner(Console(file=io.StringIO()), stream.config.parent, environ)
    show = ("config", "show", "--config", str(stream.config))
    with commands.background(*show) as showing:
        assert showing.command.wait() == 0
        for text in (commands.run(*show), showing.output.read_text()):
            assert ADDRESS in text
            assert "prod" not in text
            assert "sasl" not in text
