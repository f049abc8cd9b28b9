"""The comparison with peers, on a stream so short that only the rankings are compared.

(Quix Streams and Bytewax are installed for the benchmark only, which compares all their rankings.)
"""

from __future__ import annotations

import pytest

from stream_fs.broker import Broker
from tests.benchmarks.peers.catalogue import PEERS
from tests.benchmarks.peers.measurement import LIGHT, Results, measure
from tests.benchmarks.peers.peer_process import Case, PublishedRanking, Timing

PLAIN = [peer for peer in PEERS if peer.framework is None]


def test_the_service_and_the_plain_loop_publish_the_same(broker: Broker) -> None:
    case = Case("small", 6, 20, LIGHT)
    results = measure(broker.bootstrap, case, PLAIN, turns=1)
    for timings in results.timings.values():
        (timing,) = timings
        assert [ranking.sequence for ranking in timing.rankings] == list(range(1, 21))
        for order in timing.rankings[-1].order.values():
            assert sorted(order) == list(range(6))
        assert timing.wall > 0
    assert len(list(results.comparisons(PLAIN))) == len(PLAIN) == 3


def test_a_different_ranking_raises_an_error() -> None:
    results = Results(Case("small", 2, 10, LIGHT))
    first = [PublishedRanking(1, {"a": [0, 1]}), PublishedRanking(2, {"a": [0, 1]})]
    results.add("one", Timing(1.0, 1.0, first))
    results.add("another one", Timing(1.0, 1.0, list(first)))
    with pytest.raises(RuntimeError, match="ranking 2 of third differs"):
        results.add("third", Timing(1.0, 1.0, [first[0], PublishedRanking(2, {"a": [1, 0]})]))
    with pytest.raises(RuntimeError, match=r"fourth published \[1, 1, 2\]"):
        results.add("fourth", Timing(1.0, 1.0, [first[0], *first]))
