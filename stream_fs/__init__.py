"""stream_fs: online, unsupervised, multi-view feature selection for streams."""

from stream_fs.selector import MultiViewSelector, Ranking, Report, View

__all__ = ["MultiViewSelector", "Ranking", "Report", "View"]
