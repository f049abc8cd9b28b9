"""The configuration: the file, variables, flags, and files of feature names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stream_fs.service.configuration import load
from stream_fs.service.configuration.rendering import shown
from tests.hostile.target import Target
from tests.support.configurations import LEAST

FULL = (
    LEAST
    + """
properties = { "sasl.password" = { env = "PASSWORD" }, "linger.ms" = 5 }
[chunk]
records = 100
max_span = 60.0
[output]
top = 0.1
[limits]
record_bytes = 100000
[service]
port = 0
[log]
format = "json"
"""
)
VARIABLES = (
    "STREAM_FS_CHUNK__RECORDS=500",
    "STREAM_FS_STREAM__TOPICS=['a', 'b']",
    "STREAM_FS_KAFKA__PROPERTIES__SASL_PASSWORD=x",
    "STREAM_FS_OUTPUT__TOP=0.5",
    "STREAM_FS_SELECTOR__LAM=3.0",
)


class Configured:
    """Configurations in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "stream.toml"
        self._names = folder / "names"
        self._least = folder / "least.toml"
        self._least.write_text(LEAST, encoding="utf-8")
        self._named = folder / "named.toml"
        named = LEAST.replace("dimension = 4", 'dimension = 4\nnames = "names"')
        self._named.write_text(named, encoding="utf-8")

    def file(self, data: bytes) -> None:
        self._file.write_bytes(data)
        shown(load(self._file, {"PASSWORD": "secret"}))

    def environment(self, data: bytes) -> None:
        """Every line is both a variable and a flag."""
        lines = data.decode("utf-8", "surrogateescape").replace("\x00", "").split("\n")
        pairs = [line.partition("=") for line in lines]
        shown(load(self._least, {name: text for name, _, text in pairs if name}))
        load(self._least, {}, lines)

    def names(self, data: bytes) -> None:
        self._names.write_bytes(data)
        shown(load(self._named, {}))


def targets(folder: Path) -> Iterator[Target]:
    configured = Configured(folder)
    yield Target(
        name="configuration file",
        attempt=configured.file,
        seeds=[LEAST.encode(), FULL.encode()],
        weight=1,
    )
    variables = [line.encode() for line in VARIABLES]
    yield Target(
        name="variables and flags",
        attempt=configured.environment,
        seeds=[b"\n".join(variables), *variables, b"chunk.records=5"],
        weight=1,
    )
    names = [b"a\nb\nc\nd\n", b"1\r\n2"]
    yield Target(name="feature names", attempt=configured.names, seeds=names, weight=1)
