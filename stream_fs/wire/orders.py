"""The orders in which producers write their fields and views, as far as they have been seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from stream_fs.wire.documents import FIELDS

_MOST: Final = 8
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Order:
    """In which order the fields and the views (by their number) are written."""

    fields: tuple[str, ...]
    views: tuple[int, ...]


class Orders:
    """A few orders, the latest useful one first. They decide how fast a record is read, not how."""

    def __init__(self, views: Sequence[str]) -> None:
        self._number = {name: number for number, name in enumerate(views)}
        self._known = [Order(FIELDS, tuple(range(len(views))))]

    def __iter__(self) -> Iterator[Order]:
        return iter(tuple(self._known))

    def useful(self, order: Order) -> None:
        """It fitted, so try it first next time."""
        self._known.remove(order)
        self._known.insert(0, order)

    def learn(self, document: object) -> Order | None:
        """The order of a good record that none of the known ones covers; None if one does."""
        if not isinstance(document, dict):
            return None
        fields = tuple(document)
        views = tuple(self._number[name] for name in document["views"])
        if any(
            _within(fields, known.fields) and _within(views, known.views) for known in self._known
        ):
            return None
        order = Order(_completed(fields, FIELDS), _completed(views, range(len(self._number))))
        self._known = [order, *self._known[: _MOST - 1]]
        return order


def _within(short: Sequence[T], long: Sequence[T]) -> bool:
    """Whether the long one becomes the short one by leaving some out."""
    rest = iter(long)
    return all(item in rest for item in short)


def _completed(some: tuple[T, ...], every: Sequence[T]) -> tuple[T, ...]:
    return (*some, *(item for item in every if item not in some))
