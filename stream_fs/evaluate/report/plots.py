"""Figures as data addresses, to be embedded in the page."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence

from stream_fs.evaluate.errors import ExtraMissing

try:
    from matplotlib.figure import Figure
except ImportError as error:
    raise ExtraMissing(
        "the report needs matplotlib: install the extra with pip install 'stream-fs[evaluate]'"
    ) from error


def curves(
    title: str,
    across: str,
    up: str,
    points: Sequence[float],
    lines: Mapping[str, Sequence[float]],
    *,
    logarithmic: bool = False,
    least_height: float = 0.0,
) -> str:
    """Lines over common points, as the address of a PNG.

    The axis covers at least ``least_height``: noise should not look like an effect.
    """
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    for name, values in lines.items():
        axes.plot(list(points)[: len(values)], list(values), marker=".", label=name)
    if logarithmic:
        axes.set_xscale("log")
        axes.set_xticks(list(points), [f"{point:g}" for point in points])
        axes.minorticks_off()
    low, high = axes.get_ylim()
    room = max(least_height - (high - low), 0.0) / 2
    axes.set_ylim(low - room, high + room)
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(alpha=0.3)
    if lines:
        axes.legend(fontsize=7)
    return _address(figure)


def _address(figure: Figure) -> str:
    content = io.BytesIO()
    # No date and no version: the same rows give the same page.
    figure.savefig(content, format="png", dpi=110, metadata={"Software": None})
    return "data:image/png;base64," + base64.b64encode(content.getvalue()).decode()
