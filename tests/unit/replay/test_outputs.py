from __future__ import annotations

import json

from stream_fs.pipeline.ports import OutgoingRecord
from stream_fs.replay.outputs import dead_letter_line


def test_headers_that_are_no_text_go_into_the_file_of_dead_letters() -> None:
    line = dead_letter_line(
        OutgoingRecord("out", None, b"", (("own", b"\xff\x00"), ("none", None)), None)
    )
    assert json.loads(line)["headers"] == {"own": "\\xff\x00", "none": None}
