"""The configuration: one TOML file, environment variables over it, flags over those.

Values are typed and frozen, and checked as a whole: whoever has made several mistakes is told of
all of them at once. `load` is the way in.
"""

from stream_fs.service.configuration.configuration import Configuration
from stream_fs.service.configuration.loader import load
from stream_fs.service.configuration.secrets import Secret

__all__ = ["Configuration", "Secret", "load"]
