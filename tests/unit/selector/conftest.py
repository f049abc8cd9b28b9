"""Everything here holds on either core."""

from tests.support.cores import core

__all__ = ["core"]
