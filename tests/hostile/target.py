"""Something that reads bytes, and the bytes that it is made for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tests.hostile.mutations import mutated
from tests.hostile.structure import Writer, as_messagepack, twisted

TWISTED: Final = 0.25
"""Share of inputs that come from documents; these take longer to make."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """`attempt` takes any bytes, or raises an error of our tree; all else is a fault.

    Inputs come from `seeds`, which are good, and from `documents`, which are good before they are
    twisted.
    """

    name: str
    attempt: Callable[[bytes], object]
    seeds: Sequence[bytes]
    documents: Sequence[Any] = ()
    write: Writer = as_messagepack
    weight: int = 10
    """Its share of all inputs: less where an input takes long, such as files."""
    together: Callable[[Sequence[bytes]], object] | None = None
    """Many inputs at once, where that is how the decoder is used; it raises as `attempt` does."""

    def input(self, seed: int, number: int) -> bytes:
        """One input, which follows from its number and the seed alone."""
        chance = Random(f"{seed}/{self.name}/{number}")
        if self.documents and chance.random() < TWISTED:
            return twisted(chance, self.documents, self.write)
        return mutated(chance, self.seeds)
