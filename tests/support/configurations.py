"""A configuration for tests: the least that is needed, and a way to load it with changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from stream_fs.errors import InvalidConfiguration
from stream_fs.service.configuration import Configuration, load

LEAST = """
[stream]
name = "digits"
topics = ["digits"]

[[views]]
name = "fourier"
dimension = 4

[[views]]
name = "pixels"
dimension = 6

[selector]
clusters = 3

[kafka]
bootstrap = "localhost:9092"
"""


def loaded(
    folder: Path,
    text: str = LEAST,
    environ: Mapping[str, str] | None = None,
    flags: Iterable[str] = (),
) -> Configuration:
    path = folder / "stream.toml"
    path.write_text(text, encoding="utf-8")
    return load(path, environ or {}, flags)


def with_lines(section: str, *lines: str) -> str:
    """The least configuration, with more lines in a section or in a new one."""
    header = f"[{section}]\n"
    more = header + "\n".join(lines) + "\n"
    return LEAST.replace(header, more) if header in LEAST else LEAST + more


def problems(
    folder: Path,
    text: str = LEAST,
    environ: Mapping[str, str] | None = None,
    flags: Iterable[str] = (),
) -> list[str]:
    """What is wrong with it, line by line."""
    with pytest.raises(InvalidConfiguration) as caught:
        loaded(folder, text, environ, flags)
    return list(caught.value.problems)
