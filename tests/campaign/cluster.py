"""Nodes of a cluster killed and restarted, one at a time and all at once.

Three nodes, three replicas of everything, two of which have to be in sync: with one node down,
every partition must advance.
"""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from tests.campaign.fault_result import AddArgument, FaultResult
from tests.campaign.leaders import TRANSACTIONS, Leaders
from tests.campaign.process_group import (
    QUICK,
    ProcessGroup,
    compare_run,
    failed_result,
    prepare_shared_stream,
)
from tests.support.cluster import Cluster, running_cluster
from tests.support.recovery.launchers import Launcher, Spawned
from tests.support.recovery.prepared_stream import PreparedStream
from tests.support.recovery.stream_run import StreamRun

TOPICS: Final[tuple[Literal["input", "state", "rankings", "letters"], ...]] = (
    "input",
    "state",
    "rankings",
    "letters",
)


@dataclass(frozen=True)
class ClusterSetup:
    """A cluster, and a stream on it."""

    cluster: Cluster
    leaders: Leaders
    prepared: PreparedStream

    def run_fault(
        self,
        fault: str,
        times: int,
        inject: Callable[[ClusterSetup, ProcessGroup], str],
        make: Callable[[Path], list[str]] | None = None,
    ) -> FaultResult:
        """Compare one run of two processes with an undisturbed one; then restart all nodes.

        `inject` returns a remark for the result.
        """
        prepared, name = self.prepared, fault.replace(" ", "-").replace(",", "")
        where = (prepared.bootstrap, prepared.content, prepared.folder, name, prepared.start, QUICK)
        with StreamRun(*where, make=make) as stream_run:
            try:
                with ProcessGroup(stream_run, failures=times) as group:
                    group.reach(prepared.content.chunks // 5)
                    describe_duties = inject(self, group)
                    found = group.finish()
                return compare_run(
                    fault, times, found, prepared.expected, [describe_duties, group.exits]
                )
            except (AssertionError, TimeoutError) as error:
                return failed_result(fault, times, stream_run, error)
            finally:
                self.cluster.start()
                self.leaders.await_sync()


def kill(setup: ClusterSetup, group: ProcessGroup, node: int) -> float:
    """Kill a node, and restart it when all partitions have advanced without it.

    Returns the seconds that the slowest partition took.
    """
    setup.cluster.nodes[node].kill()
    seconds = group.advance(setup.prepared.partitions)
    setup.cluster.nodes[node].start()
    setup.leaders.await_sync()
    return seconds


def kill_leader(
    topic: Callable[[ProcessGroup], str],
) -> Callable[[ClusterSetup, ProcessGroup], str]:
    """Kill the node that leads the first partition of a topic."""

    def inject(setup: ClusterSetup, group: ProcessGroup) -> str:
        node = setup.leaders.of(topic(group))
        led = describe_duties(duties(setup, group, node))
        return f"{led}; advanced in {kill(setup, group, node):.0f} s"

    return inject


def kill_coordinator(setup: ClusterSetup, group: ProcessGroup) -> str:
    """Kill the node that the group knows as its coordinator."""
    node = setup.leaders.coordinator(group.stream_run.group)
    led = describe_duties(duties(setup, group, node))
    return f"{led}; advanced in {kill(setup, group, node):.0f} s"


def kill_sole_leader(setup: ClusterSetup, group: ProcessGroup, node: int) -> str:
    """Kill a node that leads every partition and coordinates everything."""
    found = duties(setup, group, node)
    lacking = [what for what, (share, count) in found.items() if share < count]
    assert not lacking, f"node {node} does not have all of {lacking}: {found}"
    return f"{describe_duties(found)}; advanced in {kill(setup, group, node):.0f} s"


def duties(setup: ClusterSetup, group: ProcessGroup, node: int) -> dict[str, tuple[int, int]]:
    """What a node leads and coordinates: the count, and of how many."""
    leaders, stream_run = setup.leaders, group.stream_run
    found: dict[str, tuple[int, int]] = {
        what: leaders.share(node, stream_run.topic(what)) for what in TOPICS
    }
    found["the group"] = (int(leaders.coordinator(stream_run.group) == node), 1)
    found["transactions"] = leaders.share(node, TRANSACTIONS)
    return found


def describe_duties(found: Mapping[str, tuple[int, int]]) -> str:
    return "it led " + ", ".join(f"{n} of {m} of {what}" for what, (n, m) in found.items())


def kill_each(setup: ClusterSetup, group: ProcessGroup, rounds: int) -> str:
    """One node after the other, spread over what is left of the stream."""
    slowest = 0.0
    left = setup.prepared.content.chunks - group.counts().total()
    nodes = [node for _ in range(rounds) for node in setup.cluster.nodes]
    for turn, node in enumerate(nodes):
        slowest = max(slowest, kill(setup, group, node))
        goal = setup.prepared.content.chunks - left * (len(nodes) - turn - 1) // (len(nodes) + 1)
        group.reach(min(goal, setup.prepared.content.chunks))
    return f"advanced in {slowest:.0f} s at most"


def kill_all(setup: ClusterSetup, group: ProcessGroup) -> str:
    """Kill all nodes at once, and restart them when every process has noticed."""
    setup.cluster.kill()
    group.until(
        lambda: all(process.count("no broker answers") for process in group.members),
        "log line of every process",
    )
    setup.cluster.start()
    return f"advanced in {group.advance(setup.prepared.partitions):.0f} s"


def faults(setup: ClusterSetup, rounds: int) -> Iterator[FaultResult]:
    leads: dict[str, Callable[[ProcessGroup], str]] = {
        "leads the first partition of the input": lambda group: group.stream_run.topic("input"),
        "leads the first partition of the state": lambda group: group.stream_run.topic("state"),
        "leads the rankings": lambda group: group.stream_run.topic("rankings"),
        "coordinates transactions": lambda _: TRANSACTIONS,
    }
    for what, topic in leads.items():
        yield setup.run_fault(f"SIGKILL of the node that {what}", 1, kill_leader(topic))
    yield setup.run_fault("SIGKILL of the node that coordinates the group", 1, kill_coordinator)
    yield kill_leader_of_everything(setup)
    each = len(setup.cluster.nodes) * rounds
    yield setup.run_fault(
        "SIGKILL of each node in turn", each, lambda s, group: kill_each(s, group, rounds)
    )
    yield setup.run_fault("SIGKILL of all nodes", 1, kill_all)


def kill_leader_of_everything(setup: ClusterSetup) -> FaultResult:
    """The node that leads all partitions of all topics, and coordinates group and transactions.

    On a stream of its own, whose partitions are assigned accordingly.
    """
    node = setup.leaders.move_coordinators_to_one_node(setup.cluster)
    nodes = [node, *(other for other in setup.cluster.nodes if other != node)]
    default = setup.prepared
    chunks = default.content.chunks // default.partitions
    where = (default.bootstrap, default.folder, default.partitions, chunks, default.start, nodes)
    with prepare_shared_stream(*where) as prepared:
        return replace(setup, prepared=prepared).run_fault(
            "SIGKILL of the node that leads input, state and rankings, and coordinates all",
            1,
            lambda s, group: kill_sole_leader(s, group, node),
            setup.leaders.make_topics(nodes),
        )


@contextmanager
def setup(folder: Path, partitions: int, chunks: int, start: Launcher) -> Iterator[ClusterSetup]:
    with (
        running_cluster(log_dir=folder) as cluster,
        prepare_shared_stream(cluster.bootstrap, folder, partitions, chunks, start) as prepared,
    ):
        leaders = Leaders(cluster.bootstrap)
        leaders.await_sync()
        yield ClusterSetup(cluster, leaders, prepared)


def run(options: Namespace) -> Iterator[FaultResult]:
    """One run for every fault, each against an undisturbed one."""
    with tempfile.TemporaryDirectory(prefix="stream-fs-campaign-") as folder:
        partitions, chunks = options.cluster_partitions, options.cluster_chunks
        with setup(Path(folder), partitions, chunks, Spawned) as made:
            yield from faults(made, options.cluster_rounds)


def arguments(add: AddArgument) -> None:
    add("--cluster-partitions", type=int, default=6, help="partitions of the stream")
    add("--cluster-chunks", type=int, default=60, help="chunks in each partition")
    add("--cluster-rounds", type=int, default=2, help="SIGKILLs of each node in turn")
