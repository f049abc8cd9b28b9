from __future__ import annotations

from stream_fs.cli.ranking_display import moment


def test_a_time_beyond_the_calendar_is_shown_as_a_number() -> None:
    """A producer chooses the timestamps of its records, and the largest goes into the ranking."""
    assert moment(9_000_000_000_000_000) == "9000000000000000 ms"
    assert moment(0) == "1970-01-01T00:00:00Z"
