"""The experiments, one module each: which settings to measure, and the rows of one setting."""

from __future__ import annotations

from collections.abc import Mapping

from stream_fs.evaluate.experiments import (
    ablation,
    convergence,
    drift,
    grid,
    judging,
    merging,
    missing,
    ranking,
    sensitivity,
    speed,
    stability,
    traits,
)
from stream_fs.evaluate.plan import Experiment

EXPERIMENTS: Mapping[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        traits.EXPERIMENT,
        drift.EXPERIMENT,
        convergence.EXPERIMENT,
        ranking.EXPERIMENT,
        grid.EXPERIMENT,
        stability.EXPERIMENT,
        speed.EXPERIMENT,
        missing.EXPERIMENT,
        ablation.EXPERIMENT,
        sensitivity.EXPERIMENT,
        judging.EXPERIMENT,
        merging.EXPERIMENT,
        merging.LONG,
    )
}
