"""Secrets: values from variables and files, which are never shown."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

MOST_BYTES: Final = 64 << 20
"""Maximum size of a file: the names of a few million features, but no endless device."""

_BLOCK_BYTES: Final = 1 << 16
_BLOCKS: Final = MOST_BYTES // _BLOCK_BYTES


def text_of(path: Path) -> str:
    """The text of a file; a ValueError says why it cannot be read."""
    try:
        with path.open("rb") as file:
            data = b"".join(islice(iter(lambda: file.read(_BLOCK_BYTES), b""), _BLOCKS + 1))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise ValueError(f"{path} has more than {MOST_BYTES} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8 text") from None
    # Universal newlines.
    return text.replace("\r\n", "\n").replace("\r", "\n")


REDACTED = "<redacted>"


class Secret:
    """A value whose repr is redacted.

    `origin` is the reference in the configuration, `{env = "NAME"}` or `{file = "path"}`, which can
    be shown; None if the configuration contains the value itself. A referenced value need not be
    secret: a user name can be one, too.
    """

    __slots__ = ("_value", "origin")

    def __init__(self, value: str, origin: Mapping[str, str] | None = None) -> None:
        self._value = value
        self.origin = origin

    def reveal(self) -> str:
        """The value itself."""
        return self._value

    def __repr__(self) -> str:
        return REDACTED

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)


@dataclass(frozen=True, slots=True)
class Place:
    """The context of a configuration: environment variables, and the folder of relative paths."""

    environ: Mapping[str, str]
    folder: Path

    def text(self, name: str) -> str:
        """The text of a file; a ValueError says why it cannot be read."""
        try:
            return text_of(self.folder / name)
        except ValueError as error:
            raise ValueError(f"file {error}") from None


def redacted(text: str, secrets: Collection[str]) -> str:
    """The text with all secrets redacted."""
    # Longer ones first: one secret may be the prefix of another.
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    return text


def resolve(reference: Mapping[str, Any], place: Place) -> Secret:
    """The value that `{env = "NAME"}` or `{file = "path"}` refers to."""
    if len(reference) == 1:
        ((kind, name),) = reference.items()
        if kind in ("env", "file") and isinstance(name, str):
            value = _of_variable(name, place) if kind == "env" else place.text(name).rstrip("\r\n")
            if not value:
                raise ValueError(f"{kind} {name!r} is empty")
            return Secret(value, {kind: name})
    raise ValueError('a table here must be {env = "NAME"} or {file = "path"}')


def _of_variable(name: str, place: Place) -> str:
    if name not in place.environ:
        raise ValueError(f"the environment variable {name} is not set")
    return place.environ[name]
