"""The configuration: a TOML file, overridden by environment variables, overridden by flags.

Values are typed and frozen, and validated as a whole, so that one error lists every mistake.
`load` is the entry point.
"""

from stream_fs.service.configuration.configuration import Configuration
from stream_fs.service.configuration.loader import load
from stream_fs.service.configuration.secrets import Secret

__all__ = ["Configuration", "Secret", "load"]
