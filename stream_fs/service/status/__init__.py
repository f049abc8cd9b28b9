"""The status page: what this process does, for people at `/` and for programs at `/api/status`."""

from stream_fs.service.status.observer import StatusObserver
from stream_fs.service.status.pages import pages

__all__ = ["StatusObserver", "pages"]
