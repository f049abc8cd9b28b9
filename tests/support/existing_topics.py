"""Topics without a broker: those that are said to exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stream_fs.kafka import Topics, TopicSpec


class Existing(Topics):
    """By name, how many partitions a topic has, and how it is configured."""

    def __init__(self, found: Mapping[str, tuple[int, Mapping[str, str]]] | None = None) -> None:
        self.found = dict(found or {})

    def partitions(self, names: Sequence[str]) -> dict[str, int]:
        return {name: self.found[name][0] for name in names if name in self.found}

    def config(self, name: str) -> dict[str, str]:
        return {"max.message.bytes": "1048588", **self.found[name][1]}

    def create(self, plans: Sequence[TopicSpec]) -> list[str]:
        made = [plan for plan in plans if plan.name not in self.found]
        self.found |= {plan.name: (plan.partitions, plan.config) for plan in made}
        return [plan.name for plan in made]

    def grow(self, plans: Sequence[TopicSpec]) -> list[str]:
        grown = [p for p in plans if p.follows and self.found[p.name][0] < p.partitions]
        self.found |= {plan.name: (plan.partitions, plan.config) for plan in grown}
        return [plan.name for plan in grown]
