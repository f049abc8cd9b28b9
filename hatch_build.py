"""Compiles the selector's small loops while the package is built, where there is a C compiler.

Without one the package is the same but for these libraries, and the selector does with numpy alone.
`stream-fs version` says which it is. `CC` names another compiler than `cc`.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("stream_fs/selector")
LIBRARIES = {
    "turn_float32": ("turn.c", ["-DREAL=float"]),
    "turn_float64": ("turn.c", ["-DREAL=double"]),
    "nearest_float32": ("nearest.c", ["-DREAL=float"]),
    "nearest_float64": ("nearest.c", ["-DREAL=double"]),
    "choose": ("choose.c", []),
}
"""By name: the source, and what is defined for it."""
OPTIONS = [
    *("-std=c11", "-O3", "-fPIC", "-shared"),
    # Lets loops with roots, and sums that say so, use vectors; changes no result otherwise.
    *("-fno-math-errno", "-fopenmp-simd", "-ffp-contract=off"),
]


class CompiledLoops(BuildHookInterface[Any]):
    """Adds a library for each precision to the wheel, or to the source tree that is installed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002  # hatch's
        """Compile, and mark the wheel as made for this platform."""
        if self.target_name != "wheel":
            return
        folder = Path(self.root, FOLDER)
        try:
            for name, (source, definitions) in LIBRARIES.items():
                compile_library(folder / source, folder / f"{name}.so", definitions)
        except (OSError, subprocess.CalledProcessError) as error:
            for name in LIBRARIES:
                (folder / f"{name}.so").unlink(missing_ok=True)
            said = getattr(error, "stderr", None) or error
            self.app.display_warning(
                f"the compiled core is left out, updates will be slower: {said}"
            )
            return
        build_data["artifacts"] += [f"/{FOLDER}/{name}.so" for name in LIBRARIES]
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"


def compile_library(source: Path, library: Path, definitions: list[str]) -> None:
    """Make a library, which is there whole or not at all: somebody may be loading it."""
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    unfinished = library.with_suffix(f".{os.getpid()}")
    compiler = shlex.split(os.environ.get("CC") or "cc")
    try:
        subprocess.run(
            [*compiler, *OPTIONS, *definitions, f'-DSOURCE="{digest}"', "-o", unfinished, source],
            check=True,
            capture_output=True,
            text=True,
        )
        unfinished.replace(library)
    finally:
        unfinished.unlink(missing_ok=True)
