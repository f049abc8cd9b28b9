"""Writing TOML: as much of it as a configuration needs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from stream_fs.service.configuration.secrets import REDACTED, Secret

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def key(name: str) -> str:
    """A key, quoted where it has to be."""
    return name if _BARE_KEY.fullmatch(name) else value(name)


def value(data: Any) -> str:
    """A value on one line; a secret as the reference to it, or redacted."""
    match data:
        case Secret():
            return value(REDACTED if data.origin is None else data.origin)
        case bool():
            return "true" if data else "false"
        case int() | float():
            return repr(data)
        case str():
            # JSON's texts are TOML's, but for one control character.
            return json.dumps(data, ensure_ascii=False).replace("\x7f", "\\u007f")
        case Mapping():
            inner = ", ".join(f"{key(name)} = {value(item)}" for name, item in data.items())
            return f"{{ {inner} }}" if inner else "{}"
        case _:
            return f"[{', '.join(value(item) for item in data)}]"
