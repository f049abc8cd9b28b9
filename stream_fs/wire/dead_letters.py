"""Dead letters: a bad record as received, with headers that give the reason and its position.

stream-fs-reason      a short code (`records.Reason`)
stream-fs-detail      the detail, one line
stream-fs-topic       topic,
stream-fs-partition   partition,
stream-fs-offset      offset and
stream-fs-timestamp   timestamp of the message, milliseconds since 1970

Brokers limit the size of a message after compression, producers before it, so a message that was
received may be too large to publish. The largest of its value, its key and its headers is then
shortened, and the next largest if that is not enough: a value or key to its first `KEPT_BYTES`,
headers by omitting all of them. The same applies where too many bytes would be held and published
at once. Further headers have the original size and the digest:

stream-fs-value-bytes, stream-fs-value-sha256   of a shortened value
stream-fs-key-bytes, stream-fs-key-sha256       of a shortened key
stream-fs-headers-bytes                         names and values of omitted headers

All are UTF-8 text. They follow the headers of the message; where a name occurs twice (a dead letter
that was sent again, and was bad again), the last one is the newest.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from typing import Final, Literal

from stream_fs.records import BadRecord, Headers, Message, Payload

PREFIX = "stream-fs-"

HEADERS_BYTES: Final = 65_536
"""Bytes by which a dead letter may exceed its record."""
OWN_HEADERS_BYTES: Final = 2_048
"""Upper bound of the added headers, where nothing is shortened."""
KEPT_BYTES: Final = 1_024
"""Bytes of a shortened value or key."""
SHORT_BYTES: Final = 4_096
"""A dead letter of up to this size is never shortened because of others."""

_BATCH_HEADER_BYTES: Final = 61
_RECORD_FRAME_BYTES: Final = 36
"""Upper bound of the frame of a record in its batch."""

Part = Literal["value", "key", "headers"]


def dead_letter_limit(largest_message: int) -> int:
    """Bytes of the largest dead letter, given the limit of other messages."""
    return largest_message + HEADERS_BYTES


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A bad record, what is wrong with it, and headers about its shortened parts.

    `size` is the number of bytes when `of` created the dead letter; further shortening leaves it.
    `limit` is the lowest limit that it was shortened to.
    """

    message: Message
    bad: BadRecord
    size: int = 0
    size_headers: Headers = ()
    limit: float = math.inf

    @classmethod
    def of(cls, message: Message, bad: BadRecord, limit: int) -> DeadLetter:
        """The dead letter of a message, shortened where it would exceed the limit."""
        letter = cls(message, bad).shortened(limit)
        return replace(letter, size=message_bytes(letter.payload))

    @property
    def payload(self) -> Payload:
        """The published message."""
        return dead_letter(self.message, self.bad, self.size_headers)

    def shortened(self, limit: int) -> DeadLetter:
        """The dead letter with as few parts shortened as the limit of bytes requires.

        Parts of up to `KEPT_BYTES` are kept, so a limit below about 6 kB may be exceeded.
        """
        if self.limit <= limit:
            return self
        letter = self
        while message_bytes(letter.payload) > limit and (part := _largest_part(letter.message)):
            letter = _shorten_part(letter, part)
        return replace(letter, limit=limit)


def dead_letter(message: Message, bad: BadRecord, size_headers: Headers = ()) -> Payload:
    """The message with the headers of a dead letter."""
    headers = message.headers + _headers(message, bad) + size_headers
    return Payload(message.key, message.value, headers)


def message_bytes(payload: Payload) -> int:
    """Upper bound of the bytes of a message that is sent alone, as producers and brokers count.

    Not compressed, and with the header of its batch.
    """
    content = len(payload.key or b"") + len(payload.value or b"")
    return _BATCH_HEADER_BYTES + _RECORD_FRAME_BYTES + content + _headers_bytes(payload.headers)


def _headers(message: Message, bad: BadRecord) -> Headers:
    fields = {
        "reason": bad.reason,
        "detail": bad.detail,
        "topic": message.topic,
        "partition": str(message.partition),
        "offset": str(message.offset),
        "timestamp": str(message.timestamp),
    }
    return tuple((f"{PREFIX}{name}", text.encode()) for name, text in fields.items())


def _largest_part(message: Message) -> Part | None:
    """The largest part that can be shortened; None if there is none."""
    sizes: dict[Part, int] = {
        "value": len(message.value or b""),
        "key": len(message.key or b""),
        "headers": _headers_bytes(message.headers),
    }
    part = max(sizes, key=sizes.__getitem__)
    return part if sizes[part] > KEPT_BYTES else None


def _shorten_part(letter: DeadLetter, part: Part) -> DeadLetter:
    """The dead letter with one part shortened, and headers with its size and digest."""
    message = letter.message
    if part == "headers":
        size = sum(len(name.encode()) + len(value or b"") for name, value in message.headers)
        added: Headers = ((f"{PREFIX}headers-bytes", str(size).encode()),)
        message = message._replace(headers=())
    else:
        whole = (message.value if part == "value" else message.key) or b""
        kept = whole[:KEPT_BYTES]
        added = (
            (f"{PREFIX}{part}-bytes", str(len(whole)).encode()),
            (f"{PREFIX}{part}-sha256", hashlib.sha256(whole).hexdigest().encode()),
        )
        message = message._replace(value=kept) if part == "value" else message._replace(key=kept)
    return replace(letter, message=message, size_headers=letter.size_headers + added)


def _headers_bytes(headers: Headers) -> int:
    """Bytes of headers in a message."""
    return sum(
        _field_bytes(len(name.encode())) + _field_bytes(len(value or b""))
        for name, value in headers
    )


def _field_bytes(length: int) -> int:
    """Bytes of a field and of its length, a zigzag varint of seven bits per byte."""
    bits = max(1, (2 * length).bit_length())
    return -(-bits // 7) + length
