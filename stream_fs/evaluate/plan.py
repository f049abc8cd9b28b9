"""The plan of a run: options, data sets, experiments, and their measurements."""

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
from stream_fs.evaluate.protocol import Trial
from stream_fs.selector.kernels.dispatch import native_sources

Value: TypeAlias = str | int | float
Row: TypeAlias = dict[str, Value]
Settings: TypeAlias = dict[str, Value]

LARGE = 5000
"""Data sets with more rows are repeated less often: judging dominates the run time."""
LARGE_REPETITIONS = 3

Role: TypeAlias = Literal["development", "user's own", "held-out"]
ROLES: tuple[Role, ...] = get_args(Role)
DEVELOPMENT = ("3Sources", "BBCSport", "WebWashington", "UCIDigits", "USPS", "Caltech101-7")
"""The paper's data sets, on which the defaults of the selector were chosen."""


@dataclass(frozen=True)
class Options:
    """The user's choices about the protocol."""

    repetitions: int = 5
    missing: float = 0.5
    shares: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5)
    masks: Literal["random", "published"] = "random"
    rows: int | None = None
    """Size of the random sample that represents a larger data set."""
    quick: bool = False

    def repetitions_on(self, entry: DataSetEntry, most: int | None = None) -> int:
        """Number of repetitions on a data set, for an experiment with at most ``most`` of them."""
        count = self.repetitions if most is None else self.repetitions_up_to(most)
        return min(count, LARGE_REPETITIONS) if entry.instances > LARGE else count

    def repetitions_up_to(self, most: int) -> int:
        """Number of repetitions for an experiment with at most ``most``; 1 in a quick run."""
        return 1 if self.quick else min(self.repetitions, most)


@dataclass(frozen=True)
class DataSetEntry:
    """Description of a data set in the plan, with a digest of its content."""

    name: str
    role: Role
    instances: int
    dimensions: tuple[int, ...]
    classes: int
    digest: str


@dataclass(frozen=True)
class Measurement:
    """The unit of work: its rows are stored together under its key."""

    experiment: str
    dataset: str
    settings: Mapping[str, Value]
    provenance: str
    """Version, source, revision of the experiment and content of the data; part of the key."""

    @property
    def key(self) -> str:
        """Digest of everything that the rows depend on."""
        plain = [self.experiment, self.dataset, dict(self.settings), self.provenance]
        text = json.dumps(plain, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    @property
    def subject(self) -> str:
        """The method, preset, variant or parameter value that is measured."""
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
        return ", ".join([*place, *filter(None, [self.subject])])


@dataclass(frozen=True)
class SkippedMeasurement:
    """A measurement whose method cannot process the data set, and the reason."""

    measurement: Measurement
    reason: str


class DataSetCatalog:
    """The data sets of a run: those in the user's directory, and the built-in ones."""

    def __init__(self, directory: Path | None, rows: int | None = None) -> None:
        """Larger data sets are represented by a sample of ``rows`` rows."""
        self.directory = directory
        self._rows = rows
        self._loaded: DataSet | None = None

    def names(self) -> list[str]:
        """All data sets, those of the user first."""
        own = list_sets(self.directory) if self.directory is not None else []
        return [*own, *(name for name in BUILT_IN if name not in own)]

    def load(self, name: str) -> DataSet:
        """A data set; the latest one stays in memory."""
        if self._loaded is None or self._loaded.name != name:
            self._loaded = sample(self._read(name), self._rows)
        return self._loaded

    def _read(self, name: str) -> DataSet:
        if self.directory is not None and name in list_sets(self.directory):
            return load_set(self.directory, name)
        if name in BUILT_IN:
            return BUILT_IN[name]()
        raise DataNotFound(f"no data set {name}; there are {', '.join(self.names())}")

    def entry(self, name: str) -> DataSetEntry:
        """The description of a data set."""
        dataset = self.load(name)
        digest = hashlib.sha256(dataset.labels.tobytes())
        for x in dataset.views:
            digest.update(np.ascontiguousarray(x).tobytes())
        return DataSetEntry(
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

    def published_mask(self, name: str, missing: float, repetition: int) -> Mask:
        """The published mask of a repetition (n × views)."""
        if self.directory is None:
            raise DataNotFound("published masks need a data directory: name one with --data")
        masks = load_masks(self.directory, name, missing)
        expected = self.load(name).instances
        if masks.shape[1] != expected:
            raise DataMalformed(
                f"the masks of {name} are for {masks.shape[1]} rows, not {expected}: use published "
                "masks without --rows"
            )
        return np.asarray(masks[repetition % len(masks)], dtype=np.bool_)


def sample(dataset: DataSet, rows: int | None) -> DataSet:
    """A random sample of at most ``rows`` rows, always the same ones."""
    if rows is None or dataset.instances <= rows:
        return dataset
    chosen = np.sort(np.random.default_rng(0).permutation(dataset.instances)[:rows])
    codes = np.unique(dataset.labels[chosen], return_inverse=True)[1].astype(np.int64).reshape(-1)
    return DataSet(dataset.name, tuple(x[chosen] for x in dataset.views), codes)


@dataclass(frozen=True)
class DataSetExperiment:
    """An experiment on every data set.

    ``settings`` lists the settings to measure; they include the repetition and the share of missing
    instances, which define the trial. ``measure`` returns the rows of one of them: a pure function
    of its arguments, except for times that it measures. ``revision`` changes when the same settings
    would give other rows. Without ``large``, data sets of more than `LARGE` rows are left out.
    """

    settings: Callable[[Options, DataSetEntry], Sequence[Settings]]
    measure: Callable[[Trial, Labels, Settings], list[Row]]
    revision: int = 1
    large: bool = True

    def plan(self, options: Options, entry: DataSetEntry) -> Sequence[Settings]:
        """The settings to measure on a data set."""
        if entry.instances > LARGE and not self.large:
            return []
        return [{**settings, "masks": options.masks} for settings in self.settings(options, entry)]


@dataclass(frozen=True)
class SyntheticExperiment:
    """An experiment on data that it generates itself."""

    settings: Callable[[Options], Sequence[Settings]]
    measure: Callable[[Settings], list[Row]]
    revision: int = 1


Experiment: TypeAlias = DataSetExperiment | SyntheticExperiment


@cache
def source_digest() -> str:
    """Digest of the code that results depend on."""
    digest = hashlib.sha256()
    for path in measured_sources():
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def measured_sources() -> list[Path]:
    """Every source file of the selector and of the evaluation, except those of the report."""
    package = Path(__file__).parents[1]
    python = [*package.glob("selector/**/*.py"), *package.glob("evaluate/**/*.py")]
    report = package / "evaluate" / "report"
    return sorted({*native_sources(), *(path for path in python if report not in path.parents)})


def make_plan(
    experiments: Mapping[str, Experiment], entries: Sequence[DataSetEntry], options: Options
) -> list[Measurement]:
    """All measurements, early repetitions first.

    A run that is interrupted has then measured every experiment and data set a few times.
    """
    plan: list[Measurement] = []
    version = f"{metadata.version('stream-fs')} {source_digest()}"
    for name, experiment in experiments.items():
        provenance = f"{version} {experiment.revision}"
        match experiment:
            case SyntheticExperiment():
                plan += [
                    Measurement(name, "", settings, f"{provenance} ")
                    for settings in experiment.settings(options)
                ]
            case DataSetExperiment():
                plan += [
                    Measurement(name, entry.name, settings, f"{provenance} {entry.digest}")
                    for entry in entries
                    for settings in experiment.plan(options, entry)
                ]
    return sorted(plan, key=lambda measurement: measurement.settings.get("repetition", 0))
