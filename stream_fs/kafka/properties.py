"""What the client library says of a property, without a client: by its name and its value."""

from __future__ import annotations

import re
from typing import Final

from confluent_kafka import KafkaException, Producer

from stream_fs.kafka.settings import Property

_END: Final = "stream-fs.end"
"""No property has this name: whoever is refused for it alone is right in everything before it."""

_NAME: Final = re.compile(r"[\w.-]+", re.ASCII)
"""The library is never asked about other names: at one that is not UTF-8 the process ends."""
_NO_PROPERTY: Final = "is not a property of librdkafka"
_UNKNOWN: Final = re.compile(r"^No such configuration property")
# The property goes before the message; the library may call it by another of its names.
_WORDS: Final = re.compile(
    r' (for|of) configuration property "[^"]*"|^Configuration property "\S*" '
)
_ADDRESS: Final = re.compile(
    r"((?i:plaintext|ssl|sasl_plaintext|sasl_ssl)://)?"
    r"((\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\]@]+)(:(?P<port>\d{1,5}))?|[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*)"
    r"(/.*)?"
)
_MOST_PORTS: Final = 65_535


def refusal(name: str, value: Property) -> str | None:
    """Why the library does not take a property, in its words; None where it does.

    Properties are set one after the other before a client is made. None is made here: so nothing
    connects, and no file is opened that may be on another machine.
    """
    if not _NAME.fullmatch(name):
        return _NO_PROPERTY
    if isinstance(value, str) and not _is_text(value):
        return "is not text that the library could be given"
    try:
        Producer({name: value, _END: ""})
    except KafkaException as reason:
        said = str(reason.args[0].str()).strip()
        if _END in said:
            return None
        return _NO_PROPERTY if _UNKNOWN.match(said) else _WORDS.sub("", said)
    except (TypeError, ValueError, AttributeError) as reason:  # what Python's part of it looks at
        return f"cannot be set here: {reason}"
    raise AssertionError(f"{_END} was taken for a property")


def _is_text(value: str) -> bool:
    """Whether it is UTF-8, without the zero at which the library would stop reading."""
    return "\0" not in value and not any("\ud800" <= letter <= "\udfff" for letter in value)


def wrong_addresses(bootstrap: str) -> list[str]:
    """Of a list of brokers, what cannot be one: `host`, `host:port` or `SSL://host:port` are."""
    parts = [part.strip() for part in bootstrap.split(",")]
    return [part for part in parts if part and not _is_address(part)]


def _is_address(text: str) -> bool:
    found = _ADDRESS.fullmatch(text)
    return found is not None and 0 < int(found["port"] or 1) <= _MOST_PORTS
