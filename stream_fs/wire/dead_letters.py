"""Dead letters: a message that cannot be used, as it came, and in its headers why and from where.

stream-fs-reason      a short code (`records.Reason`)
stream-fs-detail      the particulars, one line
stream-fs-topic       where the message was read: topic,
stream-fs-partition   partition,
stream-fs-offset      offset
stream-fs-timestamp   and its timestamp, milliseconds since 1970

All are UTF-8 text. They follow the message's own headers, which stay as they are; where a name
occurs twice (a dead letter that was sent again, and failed again), the last one is the newest.
"""

from __future__ import annotations

from stream_fs.records import BadRecord, Headers, Message, Payload

PREFIX = "stream-fs-"


def dead_letter(message: Message, bad: BadRecord) -> Payload:
    """The message with its reasons."""
    return Payload(message.key, message.value, message.headers + _headers(message, bad))


def _headers(message: Message, bad: BadRecord) -> Headers:
    told = {
        "reason": bad.reason,
        "detail": bad.detail,
        "topic": message.topic,
        "partition": str(message.partition),
        "offset": str(message.offset),
        "timestamp": str(message.timestamp),
    }
    return tuple((f"{PREFIX}{name}", text.encode()) for name, text in told.items())
