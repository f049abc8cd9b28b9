"""Which changes of the configuration a saved model survives.

The rule: a change that alters what the sums mean refuses; any other takes effect from the next
chunk on.

Refused, because old and new chunks would not add up:
- a view's name, place, dimension or transform; the number of clusters; the preset;
- the objective, whose minimiser is what the sums Q and R sum up: λ, β, θ, η, ξ, the neighbours,
  the weights of missing rows and of views, what becomes of an absent view, energy scaling, loss;
- which sums there are, and how they age: start, sketch, decay, and the score where it brings in
  the cluster moments or drops them;
- a parameter that only one of the two releases knows.

Accepted:
- the names of features: labels. They are not in a snapshot at all;
- how a ranking is read off the sums: budget, and the score where the moments are kept either way;
- the seed: signs and starts are drawn afresh for every chunk and stay independent;
- how far and in which steps the same objective is minimised: iterations, tolerance, inner updates,
  reassignments; and the size of the first chunk.

What is published, and how large chunks are, is no part of the parameters.

An accepted change does change the published bytes. Chunks that are replayed after a restore are
computed with the new parameters, so the digest of a ranking can be compared only where the
fingerprint in its progress record is still the present one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from stream_fs.selector.parameters import Params

ACCEPTED: Final = frozenset(
    {
        "budget",
        "first_rows",
        "inner_updates",
        "max_iterations",
        "min_iterations",
        "reassignments",
        "seed",
        "tolerance",
    }
)
"""Parameters that may change under a saved model."""

_PER_VIEW: Final = ("beta", "theta", "eta")
_ABSENT: Final = object()
_WIDTH: Final = 200


def difference(old: Mapping[str, Any], new: Params) -> list[str]:
    """What changed and makes a model unusable, a line each, old → new; empty where compatible.

    `old` is what `Params.to_dict` gave, feature names left out or not; its values may be anything,
    as long as `views` is a sequence of mappings that have a `name`.
    """
    present = new.to_dict()
    return [*_views(old["views"], present["views"]), *_parameters(old, present)]


def _views(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    before = {view["name"]: view for view in old}
    after = {view["name"]: view for view in new}
    for name in before:
        if name not in after:
            yield f"view {_shown(name)}: declared → not declared"
            continue
        for key in ("dimension", "transform"):
            was, now = before[name].get(key, _ABSENT), after[name][key]
            yield from _line(f"{key} of view {_shown(name)}", was, now)
    for name in after:
        if name not in before:
            yield f"view {_shown(name)}: not declared → declared"
    if set(before) == set(after):
        yield from _line("order of the views", list(before), list(after))


def _parameters(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    accepted = {"views", *ACCEPTED}
    if _keeps_moments(old) == _keeps_moments(new):
        accepted.add("score")
    for name in dict.fromkeys([*new, *old]):
        if name in accepted:
            continue
        was, now = old.get(name, _ABSENT), new.get(name, _ABSENT)
        if name in _PER_VIEW and (isinstance(was, Mapping) or isinstance(now, Mapping)):
            yield from _per_view(name, was, now, [view["name"] for view in old["views"]])
        else:
            yield from _line(name, was, now)


def _per_view(name: str, old: Any, new: Any, views: Sequence[str]) -> Iterator[str]:
    """Compare by view: one number for all and the same number for each mean the same.

    Views that are there no more or were not there have a line of their own already.
    """
    for view in views:
        was = old.get(view, _ABSENT) if isinstance(old, Mapping) else old
        now = new.get(view, was) if isinstance(new, Mapping) else new
        yield from _line(f"{name} of view {_shown(view)}", was, now)


def _keeps_moments(plain: Mapping[str, Any]) -> bool:
    """As `Params.keeps_moments`, for parameters that may be of another release."""
    return plain.get("start") == "consensus" or plain.get("score") == "relevance"


def _line(what: str, old: Any, new: Any) -> Iterator[str]:
    if old != new:
        yield f"{what}: {_shown(old)} → {_shown(new)}"


def _shown(value: Any) -> str:
    text = "not there" if value is _ABSENT else repr(value)
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
