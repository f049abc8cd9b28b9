"""Logs: one line per event, as text or as JSON, with its place in the stream.

Fields are passed to the standard `logging` as `extra={"fields": {…}}`. Times are UTC.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO

from stream_fs.service.configuration.secrets import redacted

if TYPE_CHECKING:  # every command imports this module; SciPy comes with the pipeline
    from stream_fs.pipeline.events import Event

ROOT: Final = "stream_fs"
"""Name of the parent of all loggers of this package."""

_LOGGER: Final = logging.getLogger(ROOT)


def set_up(
    format: Literal["text", "json"],
    level: str,
    *,
    stream: str,
    secrets: Collection[str] = (),
    to: TextIO | None = None,
) -> None:
    """Write all loggers to one stream, standard error by default.

    Every line has the stream's name; secrets are redacted wherever they occur.
    """
    handler = logging.StreamHandler(to or sys.stderr)
    line = _json_line if format == "json" else _text_line
    handler.setFormatter(_Line(line, stream, secrets))
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)  # from libraries
    logging.getLogger(ROOT).setLevel(level.upper())


def log_event(event: Event) -> None:
    """Observer of the pipeline: writes the line of an event that has one."""
    line = event.log()
    if line is not None:
        _LOGGER.log(line.level, line.text, extra={"fields": line.fields})


class _Line(logging.Formatter):
    """Collects the fields of a log record and formats them with `line`."""

    def __init__(self, line: Any, stream: str, secrets: Collection[str]) -> None:
        super().__init__()
        self._line = line
        self._stream = stream
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": _utc(record.created),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "stream": self._stream,
            **getattr(record, "fields", {}),
        }
        if record.name != ROOT:
            fields["logger"] = record.name
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return str(self._line({name: self._clean(value) for name, value in fields.items()}))

    def _clean(self, value: Any) -> Any:
        """The value with secrets in its texts redacted."""
        if isinstance(value, Mapping):
            return {str(self._clean(name)): self._clean(inner) for name, inner in value.items()}
        return redacted(value, self._secrets) if isinstance(value, str) else value


def _utc(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _json_line(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, ensure_ascii=False, default=str)


def _text_line(fields: Mapping[str, Any]) -> str:
    """`time LEVEL event key=value …`."""
    time, level, event, *_ = fields.values()
    rest = [f"{name}={_text(value)}" for name, value in list(fields.items())[3:]]
    return " ".join([time, f"{level.upper():7}", _escaped(event), *rest])


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str) and value and not set(value) & set(' "=\n\r\t'):
        return _escaped(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def _escaped(text: str) -> str:
    """The text on one line, whatever a client or a record put into it."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
