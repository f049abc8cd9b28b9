"""What is published and saved, as plain data; read from its bytes alone, without the package.

A later release may add fields; they are declared here, and nothing else may differ:

    records.imputed   of a ranking: by view, how many of the chunk's rows were imputed (`rows`), and
                      the weight n/j with which they count (`weight`)

    `REWORDED`        details of dead letters, which are words

What depends on the bytes of a ranking then differs with it: the id in its headers, its digest in
the progress record, and the lengths of outputs that a replay notes. `without_additions` takes the
fields away, and puts in place of those what they would be without.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgpack
import numpy as np
import orjson

Records = list[list[Any]]
"""Of a partition: offset, timestamp, key, value, headers."""
REWORDED: Final[Sequence[tuple[str, str]]] = (
    (r"(.*), the most for 'none'", r"\1, the maximum for 'none'"),
)
"""Details of dead letters since release 0.1.0: a pattern of the whole text, and what it became, as
for `re.sub`."""

_MAGIC: Final = b"stream-fs replay 1\n"
_FRAME: Final = struct.Struct("<II")
_TEXT_TYPES: Final = {b"application/json": "json", b"application/vnd.msgpack": "msgpack"}


# --- rankings ---------------------------------------------------------------------------------


def parsed(value: bytes, format: str) -> dict[str, Any]:
    """A ranking as plain data; ValueError where its bytes are not those that its content has."""
    plain = orjson.loads(value) if format == "json" else msgpack.unpackb(value)
    if written(plain, format) != value:
        raise ValueError(f"another encoding than before: {value[:200]!r}")
    return dict(plain)


def written(plain: Mapping[str, Any], format: str) -> bytes:
    """The inverse of `parsed`."""
    if format == "json":
        return orjson.dumps(plain)
    packed: bytes = msgpack.packb(plain)
    return packed


def ranking_format(headers: Iterable[Sequence[Any]]) -> str:
    """The format that the headers of a ranking name."""
    return _TEXT_TYPES[dict(map(tuple, headers))["content-type"]]


def stripped(value: bytes, format: str) -> bytes:
    """A ranking without declared additions; ValueError where one is not as declared."""
    plain = parsed(value, format)
    records = plain["records"]
    if "imputed" not in records:
        return value
    views = {view["name"] for view in plain["views"]}
    for name, found in records.pop("imputed").items():
        whole = name in views and list(found) == ["rows", "weight"] and type(found["rows"]) is int
        if not whole or not 0 <= found["rows"] <= (records["chunk"] or 0):
            raise ValueError(f"imputed is not as declared: {name}: {found}")
        if type(found["weight"]) is not float or not 0 <= found["weight"] < math.inf:
            raise ValueError(f"imputed is not as declared: {name}: {found}")
    return written(plain, format)


def event_id(value: bytes, format: str) -> bytes:
    """The id in the headers of a ranking."""
    return f"{parsed(value, format)['sequence']}-{digest(value)[:16]}".encode()


def digest(value: bytes) -> str:
    """By this a ranking is named in a progress record."""
    return hashlib.sha256(value).hexdigest()


# --- topics -----------------------------------------------------------------------------------


def without_additions(
    topics: Mapping[str, list[dict[str, Any]]],
    *,
    rankings: str,
    states: Sequence[str],
    earlier: Mapping[str, str] | None = None,
) -> dict[str, list[dict[str, Any]]]:
    """The content of topics as it would be without declared additions.

    `earlier` are digests of rankings published before, by what they are without additions.
    """
    digests = dict(earlier or {})
    found = {name: [dict(partition) for partition in content] for name, content in topics.items()}
    for partition in found[rankings]:
        partition["records"] = [_plain_ranking(record, digests) for record in partition["records"]]
    for name in states:
        for partition in found[name]:
            partition["records"] = [
                [*record[:3], plain_state(record[2], record[3], digests), *record[4:]]
                for record in partition["records"]
            ]
    return found


def _plain_ranking(record: list[Any], digests: dict[str, str]) -> list[Any]:
    offset, timestamp, key, value, headers = record
    format = ranking_format(headers)
    plain = stripped(value, format)
    digests[digest(value)] = digest(plain)
    if ["ce_id", event_id(value, format)] not in headers:
        raise ValueError(f"the id is not that of the ranking: {headers}")
    headers = [
        [name, event_id(plain, format) if name == "ce_id" else content] for name, content in headers
    ]
    return [offset, timestamp, key, plain, headers]


def plain_state(key: bytes, value: bytes | None, digests: Mapping[str, str]) -> bytes | None:
    """A record of a state topic with the digest that its ranking has without additions."""
    if value is None or not key.endswith(b"/progress"):
        return value
    record = msgpack.unpackb(value)
    if msgpack.packb(record) != value:
        raise ValueError(f"another encoding than before: {value!r}")
    if record.get("digest") in digests:
        record["digest"] = digests[record["digest"]]
    packed: bytes = msgpack.packb(record)
    return packed


def rankings_by_key(records: Records) -> dict[bytes, list[dict[str, Any]]]:
    """Rankings as plain data, headers included; by key, in their order."""
    found: dict[bytes, list[dict[str, Any]]] = {}
    for _, _, key, value, headers in records:
        format = ranking_format(headers)
        compared = {name: content for name, content in headers if name != "ce_id"}
        if dict(map(tuple, headers))["ce_id"] != event_id(value, format):
            raise ValueError(f"the id is not that of the ranking: {headers}")
        ranking = {"headers": compared, "order": list(dict(headers)), **parsed(value, format)}
        found.setdefault(key, []).append(ranking)
    return found


def letters_by_partition(records: Records) -> dict[bytes, Records]:
    """Dead letters without their own offsets, by the partition of the bad record."""
    found: dict[bytes, Records] = {}
    for _, timestamp, key, value, headers in records:
        newest = dict(map(tuple, headers))
        found.setdefault(newest["stream-fs-partition"], []).append([timestamp, key, value, headers])
    return found


def reworded(headers: list[list[Any]]) -> list[list[Any]]:
    """The headers of a dead letter, of whichever release, in present words."""
    return [
        [name, _in_present_words(content) if name == "stream-fs-detail" else content]
        for name, content in headers
    ]


def _in_present_words(detail: bytes) -> bytes:
    text = detail.decode()
    for pattern, words in REWORDED:
        if re.fullmatch(pattern, text):
            return re.sub(pattern, words, text).encode()
    return detail


def reworded_letters(records: Records) -> Records:
    """Dead letters, of whichever release, in present words."""
    return [[*record[:4], reworded(record[4])] for record in records]


def reworded_line(line: bytes) -> bytes:
    """The same for a line of a replay."""
    plain = orjson.loads(line)
    detail = plain["headers"]["stream-fs-detail"].encode()
    plain["headers"]["stream-fs-detail"] = _in_present_words(detail).decode()
    return orjson.dumps(plain, option=orjson.OPT_APPEND_NEWLINE)


# --- states -----------------------------------------------------------------------------------


def state_records(records: Records, digests: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The records of a state partition as plain data; parts lie with the manifest before them.

    A digest is replaced by what `digests` knows of it, which must be the name of a ranking.
    """
    found: list[dict[str, Any]] = []
    waiting = list(reversed(records))
    while waiting:
        offset, timestamp, key, value, headers = waiting.pop()
        entry: dict[str, Any] = {"offset": offset, "key": key, "timestamp": timestamp}
        entry["headers"] = headers
        if value is None:
            entry["deleted"] = True
        elif key.endswith(b"/manifest"):
            manifest = _manifest(value)
            parts = [waiting.pop() for _ in range(manifest["parts"])]
            prefix = key.removesuffix(b"manifest")
            entry["parts"] = [[part[0], part[1], part[2], len(part[3]), part[4]] for part in parts]
            if [part[2] for part in parts] != [prefix + b"%d" % n for n in range(len(parts))]:
                raise ValueError(f"parts do not follow the manifest at {offset}")
            entry |= snapshot(manifest, [part[3] for part in parts])
        else:
            entry["record"] = record = msgpack.unpackb(value)
            if record.get("digest") is not None:
                record["digest"] = digests[record["digest"]]
        found.append(entry)
    return found


def _manifest(value: bytes) -> dict[str, Any]:
    envelope = msgpack.unpackb(value)
    if list(envelope) != ["v", "sha256", "body"] or envelope["v"] != 1:
        raise ValueError(f"not a manifest: {value[:100]!r}")
    if envelope["sha256"] != hashlib.sha256(envelope["body"]).digest():
        raise ValueError("the checksum of a manifest is wrong")
    return dict(msgpack.unpackb(envelope["body"]))


def snapshot(manifest: dict[str, Any], parts: Sequence[bytes]) -> dict[str, Any]:
    """A snapshot as plain data; its checksums are right, and left out."""
    whole = b"".join(parts)
    if manifest.pop("checksum") != hashlib.sha256(whole).digest() or manifest["size"] != len(whole):
        raise ValueError("the checksum of a snapshot is wrong")
    arrays = {}
    end = 0
    for name, kind, shape, start in manifest["arrays"]:
        if start != end:
            raise ValueError(f"array {name} does not follow the one before it")
        values = np.frombuffer(whole, kind, math.prod(shape), start)
        arrays[name] = values.reshape(shape)
        end = start + values.nbytes
    return {"manifest": manifest, "arrays": arrays, "extra": msgpack.unpackb(whole[end:])}


def digests_of(records: Records) -> dict[str, str]:
    """Rankings by their digest: key and sequence."""
    found = {}
    for _, _, key, value, headers in records:
        sequence = parsed(value, ranking_format(headers))["sequence"]
        found[digest(value)] = f"{key.decode()} {sequence}"
    return found


# --- files of a replay ------------------------------------------------------------------------


def journal(data: bytes) -> list[dict[str, Any]]:
    """The transactions of a replay's checkpoint, whole ones only."""
    return [msgpack.unpackb(body) for body, _ in _frames(data)]


def _frames(data: bytes) -> Iterator[tuple[bytes, int]]:
    """The bodies, and the position behind each."""
    if not data.startswith(_MAGIC):
        raise ValueError(f"not a checkpoint of a replay: {data[:30]!r}")
    position = len(_MAGIC)
    while position + _FRAME.size <= len(data):
        length, crc = _FRAME.unpack_from(data, position)
        position += _FRAME.size
        body = data[position : position + length]
        if len(body) < length or zlib.crc32(body) != crc:
            return
        position += length
        yield body, position


def cut_journal(data: bytes, transactions: int) -> bytes:
    """A checkpoint as it was after so many transactions."""
    ends = [len(_MAGIC), *(position for _, position in _frames(data))]
    return data[: ends[transactions]]


def ranking_lines(data: bytes, format: str) -> list[bytes]:
    """The rankings in a file of a replay."""
    if format == "json":
        return data.splitlines()
    found = []
    unpacker = msgpack.Unpacker()
    unpacker.feed(data)
    start = 0
    while start < len(data):
        unpacker.skip()
        found.append(data[start : unpacker.tell()])
        start = unpacker.tell()
    return found


class PlainReplay(NamedTuple):
    """Files of a replay without declared additions, and in present words."""

    rankings: bytes
    letters: bytes
    transactions: list[dict[str, Any]]


def plain_replay(rankings: bytes, letters: bytes, checkpoint: bytes, format: str) -> PlainReplay:
    """The files as they would be; so are the lengths that the checkpoint notes of the outputs."""
    end = b"\n" if format == "json" else b""
    values = ranking_lines(rankings, format)
    plain = [stripped(value, format) for value in values]
    digests = {digest(value): digest(line) for value, line in zip(values, plain, strict=True)}
    lines = letters.splitlines(keepends=True)
    words = [reworded_line(line) for line in lines]
    lengths = {
        "out": _lengths(values, plain, len(end)),
        "dead": _lengths(lines, words, 0),
    }
    found = journal(checkpoint)
    for transaction in found:
        transaction["records"] = [
            [offset, key, plain_state(key, value, digests)]
            for offset, key, value in transaction["records"]
        ]
        outputs = transaction["notes"].get("outputs", {})
        for topic, length in outputs.items():
            outputs[topic] = lengths[topic][length]
    return PlainReplay(b"".join(line + end for line in plain), b"".join(words), found)


def _lengths(before: Sequence[bytes], now: Sequence[bytes], more: int) -> dict[int, int]:
    """By the length of a file up to each line, the length that it has with other lines."""
    lengths = {0: 0}
    there = here = 0
    for one, other in zip(before, now, strict=True):
        there, here = there + len(one) + more, here + len(other) + more
        lengths[there] = here
    return lengths


# --- saved selectors --------------------------------------------------------------------------


def selector_members(content: bytes) -> dict[str, bytes]:
    """The arrays of a saved selector as they are in the archive, which has the time in it."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def selector_arrays(content: bytes) -> dict[str, Any]:
    """The same as plain data."""
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        found: dict[str, Any] = {name: archive[name] for name in archive.files}
    return {**found, "header": orjson.loads(found["header"].tobytes())}
