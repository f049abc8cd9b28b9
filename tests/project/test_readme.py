"""The table of presets in the README has every difference between them."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Literal

from stream_fs.selector import Params, View, params

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
COLUMNS: tuple[Literal["default", "paper", "classical"], ...] = ("default", "paper", "classical")


def table() -> dict[str, tuple[str, ...]]:
    """The values of every preset by parameter, as the table has them."""
    _, _, below = README.partition("| parameter | `default` | `paper` | `classical` |\n")
    found = {}
    for line in below.partition("\n\n")[0].splitlines()[1:]:
        title, *cells = line.strip("|").split("|")
        (name,) = re.findall(r"^`(\w+)`", title.strip())
        found[name] = tuple(re.split(r"[: ]", cell.strip())[0].strip("`") for cell in cells)
    return found


def values(name: str) -> tuple[str, ...]:
    """The values of a parameter in every preset."""
    presets = [params([View("a", 2)], 2, preset=preset) for preset in COLUMNS]
    if name == "transform":
        return tuple(str(preset.views[0].transform) for preset in presets)
    found = (getattr(preset, name) for preset in presets)
    return tuple(f"{v:,.0f}" if isinstance(v, float) else str(v).lower() for v in found)


def test_the_table_has_every_difference_between_the_presets() -> None:
    names = {field.name for field in fields(Params)} - {"views", "preset"} | {"transform"}
    different = {name for name in names if len(set(values(name))) > 1}
    assert table() == {name: values(name) for name in different}
