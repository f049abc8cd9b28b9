"""Everything here holds on either core."""

from tests.cores import core

__all__ = ["core"]
