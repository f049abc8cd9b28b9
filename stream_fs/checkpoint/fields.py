"""Plain data as MessagePack, and readers of its typed fields."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgpack

from stream_fs.messagepack import Malformed, unpack

__all__ = ["LARGEST", "Malformed", "Plain", "field", "finite", "mapping", "pack", "unpack", "whole"]

Plain: TypeAlias = "bool | int | float | str | bytes | Sequence[Plain] | Mapping[str, Plain] | None"
"""Data that can be packed. Sequences are unpacked as lists, mappings as dicts."""

LARGEST: Final = 2**63 - 1
"""Largest count and offset, as in Kafka."""


def pack(value: Plain) -> bytes:
    """MessagePack; equal values in the same order give the same bytes."""
    packed: bytes = msgpack.packb(value, use_bin_type=True)
    return packed


def mapping(value: object) -> dict[str, Any]:
    """A mapping, or `Malformed`."""
    if not isinstance(value, dict):
        raise Malformed("not a mapping")
    return value


def field(fields: Mapping[str, Any], name: str, kind: type) -> Any:
    """A field of exactly this type, or `Malformed`."""
    value = fields.get(name)
    if type(value) is not kind:
        raise Malformed(f"{name} is not of type {kind.__name__}")
    return value


def whole(fields: Mapping[str, Any], name: str) -> int:
    """A field with a count or an offset, 0 … 2⁶³ - 1, or `Malformed`."""
    value: int = field(fields, name, int)
    if not 0 <= value <= LARGEST:
        raise Malformed(f"{name} is out of range")
    return value


def finite(fields: Mapping[str, Any], name: str) -> float:
    """A field with a finite number, or `Malformed`."""
    value: float = field(fields, name, float)
    if not math.isfinite(value):
        raise Malformed(f"{name} is not finite")
    return value
