"""What is to be measured: options, data sets, and tasks that know what they depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import numpy as np

from stream_fs.evaluate.builtin_datasets import BUILT_IN
from stream_fs.evaluate.datasets import DataSet, Labels, Mask, list_sets, load_masks, load_set
from stream_fs.evaluate.errors import DataMalformed, DataNotFound
from stream_fs.evaluate.protocol import Problem
from stream_fs.selector.kernels.dispatch import native_sources

Value: TypeAlias = str | int | float
Row: TypeAlias = dict[str, Value]
Settings: TypeAlias = dict[str, Value]

LARGE = 5000
"""Rows from which a data set is repeated less often: the judges take most of a run's time."""
LARGE_REPETITIONS = 3

Role: TypeAlias = Literal["development", "user's own", "held-out"]
ROLES: tuple[Role, ...] = get_args(Role)
DEVELOPMENT = ("3Sources", "BBCSport", "WebWashington", "UCIDigits", "USPS", "Caltech101-7")
"""The paper's data sets, by which the defaults of the selector were chosen."""


@dataclass(frozen=True)
class Options:
    """What the user may choose about the protocol."""

    repetitions: int = 5
    missing: float = 0.5
    shares: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5)
    masks: Literal["random", "published"] = "random"
    rows: int | None = None
    """Of larger data sets, a random sample of so many rows."""
    quick: bool = False

    def repetitions_of(self, entry: Entry, most: int | None = None) -> int:
        """How often an experiment is repeated on a data set."""
        limit = self.repetitions if most is None else min(self.repetitions, most)
        return min(limit, LARGE_REPETITIONS) if entry.instances > LARGE else limit


@dataclass(frozen=True)
class Entry:
    """A data set in the plan: what the report says of it, and a digest of its content."""

    name: str
    role: Role
    instances: int
    dimensions: tuple[int, ...]
    classes: int
    digest: str


@dataclass(frozen=True)
class Measurement:
    """One measurement, done in one go; its rows stand in the store under its key."""

    experiment: str
    dataset: str
    settings: Mapping[str, Value]
    depends: str
    """Version, source, revision of the experiment and content of the data: another, another key."""

    @property
    def key(self) -> str:
        """Everything that the rows depend on, as a digest."""
        plain = [self.experiment, self.dataset, dict(self.settings), self.depends]
        text = json.dumps(plain, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    @property
    def what(self) -> str:
        """The method, preset or variant that is measured."""
        for name in ("method", "preset", "variant"):
            if name in self.settings:
                return str(self.settings[name])
        if "parameter" in self.settings:
            return f"{self.settings['parameter']} = {self.settings['value']:g}"
        return ""

    def __str__(self) -> str:
        """For messages."""
        place = [f"experiment {self.experiment}"]
        place += [f"data set {self.dataset}"] if self.dataset else []
        return ", ".join([*place, *filter(None, [self.what])])


@dataclass(frozen=True)
class Refused:
    """A task whose method cannot take the data set, and why."""

    task: Measurement
    reason: str


class Library:
    """The data sets of a run: a directory of the user's, and those that need no files."""

    def __init__(self, directory: Path | None, rows: int | None = None) -> None:
        """Sets of the directory; of larger ones a sample of ``rows`` rows."""
        self.directory = directory
        self._rows = rows
        self._held: tuple[str, DataSet] | None = None

    def names(self) -> list[str]:
        """Every data set that there is, the user's first."""
        own = list_sets(self.directory) if self.directory is not None else []
        return [*own, *(name for name in BUILT_IN if name not in own)]

    def load(self, name: str) -> DataSet:
        """A data set; the last one stays in memory."""
        if self._held is None or self._held[0] != name:
            self._held = (name, sample(self._read(name), self._rows))
        return self._held[1]

    def _read(self, name: str) -> DataSet:
        if self.directory is not None and name in list_sets(self.directory):
            return load_set(self.directory, name)
        if name in BUILT_IN:
            return BUILT_IN[name]()
        raise DataNotFound(f"no data set {name}; there are {', '.join(self.names())}")

    def entry(self, name: str) -> Entry:
        """What the plan needs to know of a data set."""
        dataset = self.load(name)
        digest = hashlib.sha256(dataset.labels.tobytes())
        for x in dataset.views:
            digest.update(np.ascontiguousarray(x).tobytes())
        return Entry(
            name,
            self._role(name),
            dataset.instances,
            tuple(x.shape[1] for x in dataset.views),
            dataset.classes,
            digest.hexdigest()[:12],
        )

    def _role(self, name: str) -> Role:
        if self.directory is None or name not in list_sets(self.directory):
            return "held-out"
        return "development" if name in DEVELOPMENT else "user's own"

    def published(self, name: str, missing: float, repetition: int) -> Mask:
        """The published mask of a repetition (n × views)."""
        if self.directory is None:
            raise DataNotFound("published masks need a data directory: name one with --data")
        masks = load_masks(self.directory, name, missing)
        expected = self.load(name).instances
        if masks.shape[1] != expected:
            raise DataMalformed(
                f"the masks of {name} are for {masks.shape[1]} rows, not {expected}: leave --rows "
                "out with published masks"
            )
        return np.asarray(masks[repetition % len(masks)], dtype=np.bool_)


def sample(dataset: DataSet, rows: int | None) -> DataSet:
    """The data set, or so many of its rows at random, always the same ones."""
    if rows is None or dataset.instances <= rows:
        return dataset
    chosen = np.sort(np.random.default_rng(0).permutation(dataset.instances)[:rows])
    codes = np.unique(dataset.labels[chosen], return_inverse=True)[1].astype(np.int64).reshape(-1)
    return DataSet(dataset.name, tuple(x[chosen] for x in dataset.views), codes)


@dataclass(frozen=True)
class OnData:
    """A question to every data set: which settings to measure, and the rows that answer it.

    ``settings`` name at least the repetition and the share of missing instances: these make the
    problem. ``measure`` is a pure function of its arguments, but for times that it measures.
    ``revision`` changes when the same settings would give other rows. Without ``large``, data sets
    of more than `LARGE` rows are left out.
    """

    name: str
    settings: Callable[[Options, Entry], Sequence[Settings]]
    measure: Callable[[Problem, Labels, Settings], list[Row]]
    revision: int = 1
    large: bool = True

    def plan(self, options: Options, entry: Entry) -> Sequence[Settings]:
        """What is to be measured on a data set."""
        if entry.instances > LARGE and not self.large:
            return []
        return [{**of, "masks": options.masks} for of in self.settings(options, entry)]


@dataclass(frozen=True)
class OnMade:
    """A question to data that the experiment makes itself."""

    name: str
    settings: Callable[[Options], Sequence[Settings]]
    measure: Callable[[Settings], list[Row]]
    revision: int = 1


Experiment: TypeAlias = OnData | OnMade


@cache
def source_digest() -> str:
    """Of the code that measures and is measured; how it is reported does not matter."""
    package = Path(__file__).parents[1]
    measured = [*package.glob("selector/**/*.py"), *native_sources()]
    measuring = [*package.glob("evaluate/*.py"), *package.glob("evaluate/experiments/*.py")]
    digest = hashlib.sha256()
    for path in sorted(measured) + sorted(measuring):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def make_plan(
    experiments: Sequence[Experiment], entries: Sequence[Entry], options: Options
) -> list[Measurement]:
    """All tasks, early repetitions of all experiments and data sets first.

    A run that is stopped has then measured everything a little, not something often.
    """
    tasks: list[Measurement] = []
    version = f"{metadata.version('stream-fs')} {source_digest()}"
    for experiment in experiments:
        depends = f"{version} {experiment.revision}"
        match experiment:
            case OnMade():
                found = experiment.settings(options)
                tasks += [Measurement(experiment.name, "", of, f"{depends} ") for of in found]
            case OnData():
                tasks += [
                    Measurement(experiment.name, entry.name, of, f"{depends} {entry.digest}")
                    for entry in entries
                    for of in experiment.plan(options, entry)
                ]
    return sorted(tasks, key=lambda task: task.settings.get("repetition", 0))
