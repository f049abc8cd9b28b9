"""The files of the demo: the stream as a data file, and the configuration of the service."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from stream_fs.demo.digits import DigitsView, digits
from stream_fs.evaluate.data import Labels
from stream_fs.evaluate.removal import remove_views

CHUNK: Final = 300
CLUSTERS: Final = 10
PASSES: Final = 5
"""How often the images are streamed, each time in another order and with other views missing."""
MISSING: Final = 0.5
NAME: Final = "digits"
SHARE: Final = 0.3
"""Of all features: what is published, and chosen."""


@dataclass(frozen=True)
class Stream:
    """What is streamed, and the files that say so."""

    views: Sequence[DigitsView]
    labels: Labels
    records: int
    """In the data file."""
    data: Path
    config: Path
    address: str
    """Where the service listens."""

    @property
    def features(self) -> int:
        """Of all views."""
        return sum(len(view.names) for view in self.views)

    @property
    def useless(self) -> int:
        """Features that were mixed in."""
        return sum(int(view.useless.sum()) for view in self.views)

    def chunks(self, times: int) -> int:
        """Whole chunks, each of which gives a ranking, when the file is streamed so many times."""
        return times * self.records // CHUNK


def prepare(directory: Path, name: str, bootstrap: str, port: int) -> Stream:
    """Write the data and the configuration into the directory."""
    generator = np.random.default_rng(0)
    views, labels = digits(generator)
    order = np.concatenate([generator.permutation(len(labels)) for _ in range(PASSES)])
    data, config = directory / "digits.npz", directory / "stream-fs.toml"
    present = remove_views(len(order), len(views), MISSING, generator)
    # A row of NaN is a missing view.
    rows = {
        view.name: np.where(present[:, [number]], view.values[order], np.float32(np.nan))
        for number, view in enumerate(views)
    }
    np.savez(data, allow_pickle=False, **rows)
    config.write_text(_configuration(views, name, bootstrap, port), encoding="utf-8")
    return Stream(views, labels, len(order), data, config, f"http://127.0.0.1:{port}")


def _configuration(views: Iterable[DigitsView], name: str, bootstrap: str, port: int) -> str:
    # A string, a number and a list are written in JSON as in TOML.
    lines = [
        "[stream]",
        f"name = {json.dumps(name)}",
        f"topics = [{json.dumps(name)}]",
        "",
        "[selector]",
        f"clusters = {CLUSTERS}",
        "",
        "[chunk]",
        f"records = {CHUNK}",
        "",
        "[output]",
        f"top = {SHARE}",
        "",
        "[kafka]",
        f"bootstrap = {json.dumps(bootstrap)}",
        "",
        "[service]",
        f"port = {port}",
    ]
    for view in views:
        lines += [
            "",
            "[[views]]",
            f"name = {json.dumps(view.name)}",
            f"dimension = {view.values.shape[1]}",
            f"names = {json.dumps(view.names, ensure_ascii=False)}",
        ]
        if view.shape is not None:
            lines.append(f"shape = {json.dumps(view.shape)}")
    return "\n".join(lines) + "\n"
