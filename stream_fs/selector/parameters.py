"""The declaration of the views, and the parameters of the method with their presets.

A preset is a complete set of values; any of them can be overridden by name. `default` is
recommended, `paper` is the method as printed, `classical` the paper's ablation C-I²MUFS: 0/1
weights in the first term and no view weights.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, Final, Literal, TypeAlias, get_args

from stream_fs.errors import InvalidParameter

Preset = Literal["default", "paper", "classical"]
Transform = Literal["minmax", "unit", "none"]
Start = Literal["consensus", "random"]
Loss = Literal["exact", "accumulated"]
AbsentView = Literal["skip", "impute"]
Weights = Literal["quality", "binary"]
ViewWeights = Literal["learned", "uniform"]
Score = Literal["relevance", "row_norm"]
Budget = Literal["sqrt", "proportional"]
PerView = float | Mapping[str, float]
Bounds: TypeAlias = tuple[float, float, bool]
"""Lower bound, largest value, whether the lower bound itself is allowed."""


@dataclass(frozen=True, slots=True)
class View:
    """A source of features: its name, the number of its features, and their transform.

    `transform` is `minmax` (any finite value, each feature to its running range, then unit rows),
    `unit` (non-negative, unit rows: counts and text) or `none` (non-negative, unchanged); by
    default, the transform of the preset. `names` are the optional names of the features.
    """

    name: str
    dimension: int
    transform: Transform | None = None
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse an invalid declaration."""
        if not _is_text(self.name):
            raise InvalidParameter(f"a view's name must be a non-empty string, got {self.name!r}")
        if not is_whole(self.dimension) or self.dimension < 1:
            raise InvalidParameter(
                f"view {self.name!r}: dimension must be a whole number of at least 1, "
                f"got {self.dimension!r}"
            )
        object.__setattr__(self, "dimension", int(self.dimension))
        if self.transform is not None:
            _check_choice(f"view {self.name!r}: transform", self.transform, Transform)
        if self.names is not None:
            object.__setattr__(self, "names", tuple(str(name) for name in self.names))
            if len(self.names) != self.dimension:
                raise InvalidParameter(
                    f"view {self.name!r}: {len(self.names)} feature names "
                    f"for {self.dimension} features"
                )


class _Remembered:
    """A cache for derived values; not a field, so not part of equality or copies."""

    __slots__ = ("_fingerprint",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Params(_Remembered):
    """Every parameter of the method; the defaults are those of the preset `default`.

    Created by `params` from a preset. `beta`, `theta` and `eta` take one number for all
    views or a mapping from view to number.
    """

    views: tuple[View, ...]
    clusters: int
    preset: Preset = "default"
    seed: int = 0
    lam: float = 3.0
    """λ > 1, smoothness of the view weights α."""
    beta: PerView = 1.0
    """β, pull of each view's indicator towards the consensus."""
    theta: PerView = 0.1
    """θ, weight of the neighbourhood graph."""
    eta: PerView = 0.01
    """η, weight of the row sparsity of V."""
    xi: float = 10.0
    """ξ, orthogonality penalty; from about 1e3 it freezes U at its start."""
    neighbours: int = 5
    """k of the k-nearest-neighbour graph."""
    min_iterations: int = 10
    max_iterations: int = 50
    tolerance: float = 1e-4
    """Relative change of the chunk's objective at which the iterations stop."""
    inner_updates: int = 1
    """How often V and U are each updated within one iteration."""
    start: Start = "consensus"
    """Where U starts in every chunk: the assignment to the clusters so far, or at random."""
    reassignments: int = 3
    """Rounds of reassignment before the iterations (start `consensus`)."""
    first_rows: int = 20
    """Rows per cluster of the first chunk, so that its clusters are meaningful."""
    energy_scaling: bool = True
    """Use (views·α)^λ·j/s in place of α^λ, so that views of different energy are comparable."""
    loss: Loss = "exact"
    """Loss that determines α: that of the present V over all data, or the sum of earlier losses."""
    absent_view: AbsentView = "skip"
    """Treatment of a view, seen before, that is missing from a whole chunk: skip or impute."""
    weights: Weights = "quality"
    """Weight of imputed rows in the first term: their quality n_j/j, or zero."""
    view_weights: ViewWeights = "learned"
    score: Score = "relevance"
    """Score: share of a feature's variance that the consensus explains, or row norms of V."""
    sketch: int = 64
    """Width r of the sketch by which redundant features are found; 0 ranks by score alone."""
    budget: Budget = "sqrt"
    """How a share of all features is divided between views."""
    decay: float = 1.0
    """ρ, factor of all earlier statistics at every chunk; 1 disables forgetting."""

    def __post_init__(self) -> None:
        """Validate everything, and resolve each view's transform."""
        _check_views(self.views)
        default: Transform = "minmax" if self.preset == "default" else "none"
        resolved = tuple(
            view if view.transform is not None else replace(view, transform=default)
            for view in self.views
        )
        object.__setattr__(self, "views", resolved)
        for name, choices in _CHOICES.items():
            _check_choice(name, getattr(self, name), choices)
        for name, least in _WHOLE.items():
            value = getattr(self, name)
            if not is_whole(value) or value < least:
                raise InvalidParameter(
                    f"{name} must be a whole number of at least {least}, got {value!r}"
                )
            object.__setattr__(self, name, int(value))
        for name, bounds in _REAL.items():
            object.__setattr__(self, name, _real(name, getattr(self, name), bounds))
        for name, bounds in _PER_VIEW.items():
            object.__setattr__(self, name, self._per_view(name, bounds))
        if not isinstance(self.energy_scaling, bool):
            raise InvalidParameter(
                f"energy_scaling must be true or false, got {self.energy_scaling!r}"
            )
        if 0 < self.sketch < 3:
            raise InvalidParameter(
                f"sketch must be 0 (no redundancy) or at least 3, got {self.sketch}"
            )
        if self.max_iterations < self.min_iterations:
            raise InvalidParameter(
                f"max_iterations ({self.max_iterations}) is below "
                f"min_iterations ({self.min_iterations})"
            )

    def _per_view(self, name: str, bounds: Bounds) -> PerView:
        """The number, or a copy of the mapping."""
        value = getattr(self, name)
        if not isinstance(value, Mapping):
            return _real(name, value, bounds)
        names = {view.name for view in self.views}
        if set(value) != names:
            raise InvalidParameter(
                f"{name} must name every view once: expected {sorted(names)}, "
                f"got {sorted(map(str, value))}"
            )
        return {
            view.name: _real(f"{name}[{view.name!r}]", value[view.name], bounds)
            for view in self.views
        }

    def per_view(self, name: Literal["beta", "theta", "eta"], view: str) -> float:
        """One of β, θ, η for one view."""
        value: PerView = getattr(self, name)
        return float(value[view] if isinstance(value, Mapping) else value)

    @property
    def first_chunk_rows(self) -> int:
        """Rows of the first chunk."""
        return self.first_rows * self.clusters

    @property
    def keeps_moments(self) -> bool:
        """Whether the state has cluster statistics, which the start or the score requires."""
        return self.start == "consensus" or self.score == "relevance"

    @property
    def fingerprint(self) -> str:
        """Digest of views and parameters; states with the same one are comparable."""
        known: str | None = getattr(self, "_fingerprint", None)
        if known is None:
            text = json.dumps(self.to_dict(), sort_keys=True, ensure_ascii=False)
            known = hashlib.sha256(text.encode()).hexdigest()[:16]
            object.__setattr__(self, "_fingerprint", known)
        return known

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON or MessagePack; `from_dict` is its inverse."""
        plain: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        plain["views"] = [
            {**asdict(view), "names": None if view.names is None else list(view.names)}
            for view in self.views
        ]
        for name in _PER_VIEW:
            if isinstance(plain[name], Mapping):
                plain[name] = dict(plain[name])
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Params:
        """The inverse of `to_dict`; unknown or missing keys are an error."""
        expected = {field.name for field in fields(cls)}
        if set(plain) != expected:
            raise InvalidParameter(f"parameters differ: {sorted(expected ^ set(plain))}")
        views = tuple(
            View(view["name"], view["dimension"], view["transform"], _names(view["names"]))
            for view in plain["views"]
        )
        return cls(**{**plain, "views": views})


_PAPER: Final[dict[str, Any]] = {
    "xi": 1e3,
    "inner_updates": 1,
    "start": "random",
    "reassignments": 0,
    "first_rows": 1,
    "energy_scaling": False,
    "loss": "accumulated",
    "absent_view": "impute",
    "score": "row_norm",
    "sketch": 0,
    "budget": "proportional",
}

PRESETS: Final[dict[Preset, dict[str, Any]]] = {
    "default": {},
    "paper": _PAPER,
    "classical": {**_PAPER, "weights": "binary", "view_weights": "uniform"},
}
"""By preset, the values that differ from the defaults of `Params`."""

_CHOICES: Final[dict[str, Any]] = {
    "preset": Preset,
    "start": Start,
    "loss": Loss,
    "absent_view": AbsentView,
    "weights": Weights,
    "view_weights": ViewWeights,
    "score": Score,
    "budget": Budget,
}

_WHOLE: Final[dict[str, int]] = {
    "clusters": 1,
    "seed": 0,
    "neighbours": 1,
    "min_iterations": 1,
    "max_iterations": 1,
    "inner_updates": 1,
    "reassignments": 0,
    "first_rows": 1,
    "sketch": 0,
}

MOST_WEIGHT: Final = 1e9
"""Largest weight of a term: beyond, sums in single precision could overflow."""

_REAL: Final[dict[str, Bounds]] = {
    "lam": (1.0, math.inf, False),
    "xi": (0.0, MOST_WEIGHT, True),
    "tolerance": (0.0, math.inf, True),
    "decay": (0.0, 1.0, False),
}

_PER_VIEW: Final[dict[str, Bounds]] = {
    "beta": (0.0, MOST_WEIGHT, False),
    "theta": (0.0, MOST_WEIGHT, True),
    "eta": (0.0, MOST_WEIGHT, True),
}


def params(
    views: Sequence[View], clusters: int, *, preset: Preset = "default", **overrides: Any
) -> Params:
    """The parameters of a preset, with some of them overridden by name."""
    _check_choice("preset", preset, Preset)
    known = {field.name for field in fields(Params)} - {"views", "clusters", "preset"}
    unknown = sorted(set(overrides) - known)
    if unknown:
        raise InvalidParameter(
            f"unknown parameter {', '.join(map(repr, unknown))}; known are {sorted(known)}"
        )
    values = {**PRESETS[preset], **overrides}
    return Params(views=tuple(views), clusters=clusters, preset=preset, **values)


def _names(names: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def is_whole(value: object) -> bool:
    """Whether it is an integer, excluding booleans."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _check_views(views: tuple[View, ...]) -> None:
    if not views:
        raise InvalidParameter("at least one view must be declared")
    seen: set[str] = set()
    for view in views:
        if view.name in seen:
            raise InvalidParameter(f"view {view.name!r} is declared twice")
        seen.add(view.name)


def _check_choice(name: str, value: object, choices: Any) -> None:
    allowed = get_args(choices)
    if value not in allowed:
        raise InvalidParameter(f"{name} must be one of {', '.join(allowed)}, got {value!r}")


def _real(name: str, value: object, bounds: Bounds) -> float:
    low, high, closed = bounds
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        if math.isfinite(number) and low <= number <= high and (closed or number > low):
            return number
    bound = f"{'at least' if closed else 'above'} {low:g}"
    if math.isfinite(high):
        bound += f" and at most {high:g}"
    raise InvalidParameter(f"{name} must be a number {bound}, got {value!r}")
