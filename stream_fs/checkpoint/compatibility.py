"""The changes of the configuration with which a saved model can continue.

The rule: a change that alters the meaning of the sums is rejected; any other takes effect from the
next chunk on.

Rejected, because old and new chunks could not be added up:
- a view's name, place, dimension or transform; the number of clusters; the preset;
- the objective, whose minimisers the sums Q and R add up: λ, β, θ, η, ξ, the neighbours, the
  weights of missing rows and of views, the treatment of an absent view, energy scaling, loss;
- the set of sums, and their decay: start, sketch, decay, and the score where it adds or removes
  the cluster moments;
- a parameter that only one of the two releases has.

Accepted:
- the names of features, which are labels and not part of a snapshot;
- how a ranking follows from the sums: budget, and the score where the moments are kept either way;
- the seed: signs and starts are drawn anew for every chunk, and stay independent;
- how far and in which steps the same objective is minimised: iterations, tolerance, inner updates,
  reassignments; and the size of the first chunk.

The number of published features and the size of chunks are not parameters of the model.

An accepted change alters the published bytes. Chunks that are replayed after a restore are computed
with the new parameters, so the digest of a ranking can be compared only where its progress record
has the present fingerprint.
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
"""Parameters that may change while a model continues."""

_PER_VIEW: Final = ("beta", "theta", "eta")
_ABSENT: Final = object()
_MAX_CHARACTERS: Final = 200


def incompatible_changes(old: Mapping[str, Any], new: Params) -> list[str]:
    """The changes with which a model cannot continue, one line each, old → new.

    `old` is the result of `Params.to_dict`, with or without feature names; its values may be
    anything, as long as `views` is a sequence of mappings that have a `name`.
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
    """Compare by view: one number for all views equals the same number for each.

    Views that were added or removed have lines of their own.
    """
    for view in views:
        was = old.get(view, _ABSENT) if isinstance(old, Mapping) else old
        now = new.get(view, was) if isinstance(new, Mapping) else new
        yield from _line(f"{name} of view {_shown(view)}", was, now)


def _keeps_moments(plain: Mapping[str, Any]) -> bool:
    """As `Params.keeps_moments`, for parameters of any release."""
    return plain.get("start") == "consensus" or plain.get("score") == "relevance"


def _line(what: str, old: Any, new: Any) -> Iterator[str]:
    if old != new:
        yield f"{what}: {_shown(old)} → {_shown(new)}"


def _shown(value: Any) -> str:
    text = "not there" if value is _ABSENT else repr(value)
    return text if len(text) <= _MAX_CHARACTERS else f"{text[: _MAX_CHARACTERS - 1]}…"
