"""The experiments, one module each: the settings to measure, and the rows of one setting.

A module here is an experiment of the same name (with hyphens for underscores), and defines it as
``EXPERIMENT``; there is no other registration. Its tables are in the module of `report` with the
section that it belongs to.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stream_fs.evaluate.plan import Experiment


def experiment_names() -> list[str]:
    """The names of all experiments, sorted."""
    return sorted(module.name.replace("_", "-") for module in iter_modules(__path__))


def load_experiment(name: str) -> Experiment:
    """The experiment of a name."""
    module = import_module(f"{__name__}.{name.replace('-', '_')}")
    experiment: Experiment = module.EXPERIMENT
    return experiment
