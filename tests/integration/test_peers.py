"""The race against peers, so short that its figures mean nothing: do they do the same work?

(Quix Streams and Bytewax are installed for the benchmark only, which compares all their rankings.)
"""

from __future__ import annotations

import pytest

from stream_fs.broker import Broker
from tests.benchmarks.peers.contest import LIGHT, Case, Finish, Results, contest
from tests.benchmarks.peers.contestants import PEERS

PLAIN = [peer for peer in PEERS if peer.framework is None]


def test_the_service_and_the_plain_loop_publish_the_same(broker: Broker) -> None:
    case = Case("small", 6, 20, LIGHT)
    results = contest(broker.bootstrap, case, PLAIN, turns=1)
    for finishes in results.finishes.values():
        (finish,) = finishes
        assert len(finish.orders) == case.chunks
        assert {name: sorted(order) for name, order in finish.orders[-1].items()} == {
            "a": list(range(6)),
            "b": list(range(6)),
        }
        assert finish.wall > 0
    assert len(list(results.comparisons(PLAIN))) == len(PLAIN) == 3


def test_another_ranking_ends_the_race() -> None:
    results = Results(Case("small", 2, 10, LIGHT))
    results.add("one", Finish(1.0, 1.0, [{"a": [0, 1]}]))
    results.add("same", Finish(1.0, 1.0, [{"a": [0, 1]}]))
    with pytest.raises(RuntimeError, match="ranking 1 of other is another one"):
        results.add("other", Finish(1.0, 1.0, [{"a": [1, 0]}]))
