"""The race against peers, so short that its figures mean nothing: do they do the same work?

(Quix Streams and Bytewax are installed for the benchmark only, which compares all their rankings.)
"""

from __future__ import annotations

import pytest

from stream_fs.broker import Broker
from tests.benchmarks.peers.catalogue import PEERS
from tests.benchmarks.peers.measurement import LIGHT, Results, contest
from tests.benchmarks.peers.peer_process import Case, Finish, Seen

PLAIN = [peer for peer in PEERS if peer.framework is None]


def test_the_service_and_the_plain_loop_publish_the_same(broker: Broker) -> None:
    case = Case("small", 6, 20, LIGHT)
    results = contest(broker.bootstrap, case, PLAIN, turns=1)
    for finishes in results.finishes.values():
        (finish,) = finishes
        assert [seen.sequence for seen in finish.rankings] == list(range(1, 21))
        for order in finish.rankings[-1].order.values():
            assert sorted(order) == list(range(6))
        assert finish.wall > 0
    assert len(list(results.comparisons(PLAIN))) == len(PLAIN) == 3


def test_another_ranking_ends_the_race() -> None:
    results = Results(Case("small", 2, 10, LIGHT))
    first = [Seen(1, {"a": [0, 1]}), Seen(2, {"a": [0, 1]})]
    results.add("one", Finish(1.0, 1.0, first))
    results.add("another one", Finish(1.0, 1.0, list(first)))
    with pytest.raises(RuntimeError, match="ranking 2 of third is another one"):
        results.add("third", Finish(1.0, 1.0, [first[0], Seen(2, {"a": [1, 0]})]))
    with pytest.raises(RuntimeError, match=r"fourth has published \[1, 1, 2\]"):
        results.add("fourth", Finish(1.0, 1.0, [first[0], *first]))
