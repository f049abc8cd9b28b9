from __future__ import annotations

import pytest

from stream_fs.demo.dataset import CHUNK, DemoStream
from stream_fs.demo.display import (
    TimedRanking,
)
from stream_fs.demo.summary import (
    SelectedFeatures,
    all_features,
    cluster_quality,
    describe,
    summary,
)
from tests.support.demo import ranking


def test_useless_features_in_the_top_are_counted(stream: DemoStream) -> None:
    good = SelectedFeatures.top(stream, ranking(stream, 0))
    assert good.useless == 0
    assert good.count == pytest.approx(0.3 * stream.features, abs=1)
    bad = SelectedFeatures.top(stream, ranking(stream, 0, best="last"))
    assert bad.count == good.count
    assert 30 <= bad.useless <= stream.useless


def test_useless_features_worsen_the_clusters(stream: DemoStream) -> None:
    useful = [~view.useless for view in stream.views]
    assert (
        cluster_quality(stream, useful).raw
        > cluster_quality(stream, all_features(stream)).raw + 0.3
    )


@pytest.mark.parametrize("passes", [1, 2])
def test_the_announced_number_of_records_is_that_of_the_stream(
    stream: DemoStream, passes: int
) -> None:
    text = describe(stream, passes)
    assert text.endswith(f" {passes * stream.records:,} records.")
    assert ("again" in text) is (passes > 1)


def test_the_summary_reports_gaps(stream: DemoStream) -> None:
    seen = [TimedRanking(ranking(stream, number), float(number)) for number in (1, 2, 3)]
    text = summary(stream, seen, seen)
    assert f"{3 * CHUNK:,} records in 3 chunks of {CHUNK} gave 3 rankings, each" in text
    assert f"{CHUNK} records/s" in text
    assert "gaps" in summary(stream, [seen[0], seen[2]], [])
