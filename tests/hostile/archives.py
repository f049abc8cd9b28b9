"""Archives with valid checksums, but changed members."""

from __future__ import annotations

import io
import json
import zipfile
from random import Random
from typing import Any, Final

from tests.hostile.documents import as_json, mutate_document
from tests.hostile.mutations import mutate
from tests.hostile.target import Target

_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_HEADERS: Final = (
    "{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}",
    "{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, 'more': 1}}",
    "{{'descr': {{'a': '{descr}'}}, 'fortran_order': {order}, 'shape': {shape}}}",
    "[" * 2000,
    "{{'descr': '{descr}', 'shape': {shape}}}",
)
_DESCRS: Final = (
    "<f8",
    "<f4",
    ">f8",
    "|b1",
    "<i8",
    "|O",
    "<U3",
    "<c16",
    "|V7",
    "<M8[s]",
    "x",
    "<f2",
)
_SHAPES: Final = (
    "(5, 3)", "(5, 4)", "(5, 2)", "(0, 3)", "()", "(5,)", "(4611686018427387904, 3)", "(-1, 3)",
    "(100000000, 3)", "(3, 2)", "(5, 3, 1)", "(1e3, 3)", "(True, 3)", "('a',)", "(9, 0)",
)  # fmt: skip
_ORDERS: Final = ("False", "True", "1", "None")


class ArchiveTarget(Target):
    """Mutates the members of its seeds."""

    def input(self, seed: int, number: int) -> bytes:
        chance = Random(f"{seed}/{self.name}/{number}")
        with zipfile.ZipFile(io.BytesIO(chance.choice(self.seeds))) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        for _ in range(chance.choice((1, 1, 2, 3))):
            name = chance.choice(list(members))
            members[name] = _change_member(chance, name, members)
        if chance.random() < 0.1:
            members[chance.choice(("../../x", "a.npy", "header.npy", "/"))] = b""
        if chance.random() < 0.1:
            del members[chance.choice(list(members))]
        method = chance.choice(_METHODS) if chance.random() < 0.3 else zipfile.ZIP_STORED
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w", method) as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        data = written.getvalue()
        return mutate(chance, [data]) if chance.random() < 0.1 else data


def _change_member(chance: Random, name: str, members: dict[str, bytes]) -> bytes:
    data = members[name]
    kind = chance.random()
    if name == "header.npy" and kind < 0.7 and data[128:].startswith(b"{") and data.endswith(b"}"):
        # The description of a model: 128 bytes of NumPy's header, then JSON.
        return _array(mutate_document(chance, [_parsed(data[128:])], as_json), "|u1", chance)
    if kind < 0.35:
        return mutate(chance, [data])
    if kind < 0.5:
        return members[chance.choice(list(members))]
    if kind < 0.6:
        return _array(bytes(chance.choice((10_000, 3_000_000))), chance.choice(_DESCRS), chance)
    return _array(data[128:], chance.choice(_DESCRS), chance, chance.choice(_SHAPES))


def _parsed(data: bytes) -> Any:
    """A description; empty where it was changed before and is not JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return {}


def _array(data: bytes, descr: str, chance: Random, shape: str | None = None) -> bytes:
    """A member as `numpy.save` writes it, with any header."""
    template = _HEADERS[0] if chance.random() < 0.85 else chance.choice(_HEADERS)
    order = "False" if chance.random() < 0.8 else chance.choice(_ORDERS)
    header = template.format(descr=descr, order=order, shape=shape or f"({len(data)},)") + "\n"
    version = b"\x02\x00" if len(header) > 60_000 else b"\x01\x00"
    length = len(header).to_bytes(4 if version[0] == 2 else 2, "little")
    return b"\x93NUMPY" + version + length + header.encode() + data
