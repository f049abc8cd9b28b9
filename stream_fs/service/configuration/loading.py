"""From a file, variables and flags to a configuration, or to everything that is wrong with it.

Each section is checked by itself, and what concerns several keys wherever these are right; so one
mistake does not hide the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from stream_fs.errors import InvalidConfiguration
from stream_fs.service.configuration import checks, sources
from stream_fs.service.configuration.configuration import Configuration
from stream_fs.service.configuration.problems import lines
from stream_fs.service.configuration.reading import read
from stream_fs.service.configuration.secrets import Place


def load(path: Path, environ: Mapping[str, str], flags: Iterable[str] = ()) -> Configuration:
    """The configuration; raises `InvalidConfiguration` with every problem.

    `flags` are of the form `section.key=value`. File names in the configuration are relative to
    the folder of its file.
    """
    try:
        plain = sources.of_file(path)
        settings = [*sources.of_environment(environ), *sources.of_flags(flags)]
    except ValueError as error:
        raise InvalidConfiguration([str(error)]) from None
    merged, origins, problems = sources.lay_over(plain, settings)
    found, more = read(merged, Place(environ, path.parent))
    problems += [*more, *sources.mistaken_variables(environ)]
    problems += checks.all_problems(found)
    if problems:
        raise InvalidConfiguration(lines(problems, origins))
    return Configuration.model_construct(**found.sections)
