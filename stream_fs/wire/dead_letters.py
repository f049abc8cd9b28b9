"""Dead letters: a message that cannot be used, as it came, and in its headers why and from where.

stream-fs-reason      a short code (`records.Reason`)
stream-fs-detail      the particulars, one line
stream-fs-topic       where the message was read: topic,
stream-fs-partition   partition,
stream-fs-offset      offset
stream-fs-timestamp   and its timestamp, milliseconds since 1970

Brokers limit the size of a message after compression, and a producer before it, so a message that
was read may be too large to be written. The largest of its value, its key and its headers is then
shortened, and the next largest if that is not enough: a value or key to its first `KEPT_BYTES`,
headers by leaving all of them out. The same is done where too many bytes would have to be held and
written at once. Further headers have the original size, and the digest:

stream-fs-value-bytes, stream-fs-value-sha256   of a value that was shortened
stream-fs-key-bytes, stream-fs-key-sha256       of a key that was shortened
stream-fs-headers-bytes                         names and values of headers that were left out

All are UTF-8 text. They follow the message's own headers; where a name occurs twice (a dead letter
that was sent again, and failed again), the last one is the newest.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from typing import Final, Literal

from stream_fs.records import BadRecord, Headers, Message, Payload

PREFIX = "stream-fs-"

HEADERS_BYTES: Final = 65_536
"""Bytes by which a dead letter may exceed the record that it carries."""
OWN_HEADERS_BYTES: Final = 2_048
"""Upper bound of the headers that a dead letter adds to a message that is not shortened."""
KEPT_BYTES: Final = 1_024
"""What is left of a value or a key that is shortened."""
SHORT_BYTES: Final = 4_096
"""A dead letter of up to so many bytes stays whole, however many others are held."""

_BATCH_BYTES: Final = 61
"""The header of a batch of records."""
_RECORD_BYTES: Final = 36
"""The frame of a record in it, at most."""

Part = Literal["value", "key", "headers"]


def dead_letter_limit(largest_message: int) -> int:
    """Bytes of the largest dead letter, where records and rankings have at most so many."""
    return largest_message + HEADERS_BYTES


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A bad record, what is wrong with it, and headers about parts of it that were shortened.

    `size` is how many bytes its dead letter needed when it was made by `of`; it stays when the
    letter is shortened once more. `limit` is the lowest limit that it was shortened for.
    """

    message: Message
    bad: BadRecord
    size: int = 0
    cuts: Headers = ()
    limit: float = math.inf

    @classmethod
    def of(cls, message: Message, bad: BadRecord, limit: int) -> DeadLetter:
        """The dead letter of a message, shortened if it would need more bytes than the limit."""
        fitting = cls(message, bad).shortened(limit)
        return replace(fitting, size=message_bytes(fitting.payload))

    @property
    def payload(self) -> Payload:
        """The dead letter as it is published."""
        return dead_letter(self.message, self.bad, self.cuts)

    def shortened(self, most: int) -> DeadLetter:
        """With as few parts shortened as it takes to need at most so many bytes.

        Parts of up to `KEPT_BYTES` stay whole, so a limit below some 6 kB may not be reached.
        """
        if self.limit <= most:
            return self
        found = self
        while message_bytes(found.payload) > most and (part := _largest_part(found.message)):
            found = _cut(found, part)
        return replace(found, limit=most)


def dead_letter(message: Message, bad: BadRecord, cuts: Headers = ()) -> Payload:
    """The message with its reasons."""
    return Payload(message.key, message.value, message.headers + _headers(message, bad) + cuts)


def message_bytes(payload: Payload) -> int:
    """Upper bound of the bytes of a message on its own, which producers and brokers limit.

    Without compression, and with the header of its batch.
    """
    content = len(payload.key or b"") + len(payload.value or b"")
    return _BATCH_BYTES + _RECORD_BYTES + content + _framed_bytes(payload.headers)


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


def _largest_part(message: Message) -> Part | None:
    """The largest part of a message that can still be shortened."""
    sizes: dict[Part, int] = {
        "value": len(message.value or b""),
        "key": len(message.key or b""),
        "headers": _framed_bytes(message.headers),
    }
    part = max(sizes, key=sizes.__getitem__)
    return part if sizes[part] > KEPT_BYTES else None


def _cut(letter: DeadLetter, part: Part) -> DeadLetter:
    """The letter with one part shortened, and headers about it."""
    message = letter.message
    if part == "headers":
        size = sum(len(name.encode()) + len(value or b"") for name, value in message.headers)
        cuts: Headers = ((f"{PREFIX}headers-bytes", str(size).encode()),)
        message = message._replace(headers=())
    else:
        whole = (message.value if part == "value" else message.key) or b""
        kept = whole[:KEPT_BYTES]
        cuts = (
            (f"{PREFIX}{part}-bytes", str(len(whole)).encode()),
            (f"{PREFIX}{part}-sha256", hashlib.sha256(whole).hexdigest().encode()),
        )
        message = message._replace(value=kept) if part == "value" else message._replace(key=kept)
    return replace(letter, message=message, cuts=letter.cuts + cuts)


def _framed_bytes(headers: Headers) -> int:
    """Bytes of headers in a message."""
    return sum(_framed(len(name.encode())) + _framed(len(value or b"")) for name, value in headers)


def _framed(length: int) -> int:
    """Bytes of a field with its length, a zigzag varint of seven bits per byte."""
    bits = max(1, (2 * length).bit_length())
    return -(-bits // 7) + length
