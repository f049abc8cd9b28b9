"""A decoder under test, and valid inputs for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tests.hostile.documents import Writer, as_messagepack, mutate_document
from tests.hostile.mutations import mutate

DOCUMENT_SHARE: Final = 0.25
"""Share of inputs that are made from documents, which takes longer."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """`attempt` accepts bytes or raises a `StreamFsError`; any other outcome is a fault.

    Inputs are mutations of `seeds`, which are valid, and of the valid `documents`.
    """

    name: str
    attempt: Callable[[bytes], object]
    seeds: Sequence[bytes]
    documents: Sequence[Any] = ()
    write: Writer = as_messagepack
    weight: int = 10
    """Share of all inputs: less where an input takes long, such as files."""
    attempt_batch: Callable[[Sequence[bytes]], object] | None = None
    """Many inputs at once, where the decoder is used like that; raises as `attempt` does."""

    def input(self, seed: int, number: int) -> bytes:
        """One input, a function of the seed and its number."""
        chance = Random(f"{seed}/{self.name}/{number}")
        if self.documents and chance.random() < DOCUMENT_SHARE:
            return mutate_document(chance, self.documents, self.write)
        return mutate(chance, self.seeds)
