"""Nodes of a cluster killed and brought back, one at a time and all at once.

Three nodes, three replicas of everything, two of which have to be in sync: with one node gone,
every partition has to go on.
"""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from tests.campaign.fault_result import Account, AddArgument
from tests.campaign.leaders import TRANSACTIONS, Leaders
from tests.campaign.process_group import QUICK, Troupe, failed, judged, shared_stage
from tests.support.cluster import Cluster, running_cluster
from tests.support.recovery.launchers import Fresh, Start
from tests.support.recovery.prepared_stream import Stage
from tests.support.recovery.stream_run import Journey

TOPICS: Final[tuple[Literal["input", "state", "rankings", "letters"], ...]] = (
    "input",
    "state",
    "rankings",
    "letters",
)


@dataclass(frozen=True)
class Scene:
    """A cluster, and a stream on it."""

    cluster: Cluster
    leaders: Leaders
    staged: Stage

    def suffer(
        self,
        fault: str,
        times: int,
        inflict: Callable[[Scene, Troupe], str],
        make: Callable[[Path], list[str]] | None = None,
    ) -> Account:
        """One journey of two processes, against an undisturbed one; afterwards all nodes are back.

        `inflict` tells what else there is to say.
        """
        staged, name = self.staged, fault.replace(" ", "-").replace(",", "")
        where = (staged.bootstrap, staged.content, staged.folder, name, staged.start, QUICK)
        with Journey(*where, make=make) as journey:
            try:
                with Troupe(journey, failures=times) as troupe:
                    troupe.reach(staged.content.chunks // 5)
                    told = inflict(self, troupe)
                    found = troupe.finish()
                return judged(fault, times, found, staged.expected, [told, troupe.told])
            except (AssertionError, TimeoutError) as error:
                return failed(fault, times, journey, error)
            finally:
                self.cluster.start()
                self.leaders.await_sync()


def kill(scene: Scene, troupe: Troupe, node: int) -> float:
    """Kill a node, and bring it back when all partitions have gone on without it.

    How many seconds the slowest partition took.
    """
    scene.cluster.nodes[node].kill()
    seconds = troupe.advance(scene.staged.partitions)
    scene.cluster.nodes[node].start()
    scene.leaders.await_sync()
    return seconds


def kill_leader(topic: Callable[[Troupe], str]) -> Callable[[Scene, Troupe], str]:
    """Kill the node that leads the first partition of a topic."""

    def inflict(scene: Scene, troupe: Troupe) -> str:
        node = scene.leaders.of(topic(troupe))
        led = told(duties(scene, troupe, node))
        return f"{led}; went on in {kill(scene, troupe, node):.0f} s"

    return inflict


def kill_coordinator(scene: Scene, troupe: Troupe) -> str:
    """Kill the node that the members of the group were told to turn to."""
    node = scene.leaders.coordinator(troupe.journey.group)
    led = told(duties(scene, troupe, node))
    return f"{led}; went on in {kill(scene, troupe, node):.0f} s"


def kill_who_has_all(scene: Scene, troupe: Troupe, node: int) -> str:
    """Kill a node that has every duty there is."""
    found = duties(scene, troupe, node)
    lacking = [what for what, (share, count) in found.items() if share < count]
    assert not lacking, f"node {node} does not have all of {lacking}: {found}"
    return f"{told(found)}; went on in {kill(scene, troupe, node):.0f} s"


def duties(scene: Scene, troupe: Troupe, node: int) -> dict[str, tuple[int, int]]:
    """What a node leads and coordinates: how much of how much."""
    leaders, journey = scene.leaders, troupe.journey
    found: dict[str, tuple[int, int]] = {
        what: leaders.share(node, journey.topic(what)) for what in TOPICS
    }
    found["the group"] = (int(leaders.coordinator(journey.group) == node), 1)
    found["transactions"] = leaders.share(node, TRANSACTIONS)
    return found


def told(found: Mapping[str, tuple[int, int]]) -> str:
    return "it had " + ", ".join(f"{n} of {m} of {what}" for what, (n, m) in found.items())


def kill_each(scene: Scene, troupe: Troupe, rounds: int) -> str:
    """One node after the other, spread over what is left of the stream."""
    slowest = 0.0
    left = scene.staged.content.chunks - troupe.counts().total()
    turns = [node for _ in range(rounds) for node in scene.cluster.nodes]
    for turn, node in enumerate(turns):
        slowest = max(slowest, kill(scene, troupe, node))
        goal = scene.staged.content.chunks - left * (len(turns) - turn - 1) // (len(turns) + 1)
        troupe.reach(min(goal, scene.staged.content.chunks))
    return f"went on in {slowest:.0f} s at most"


def kill_all(scene: Scene, troupe: Troupe) -> str:
    """All at once; they come back when every process has noticed."""
    scene.cluster.kill()
    troupe.until(
        lambda: all(life.count("no broker answers") for life in troupe.members), "notice of it"
    )
    scene.cluster.start()
    return f"went on in {troupe.advance(scene.staged.partitions):.0f} s"


def faults(scene: Scene, rounds: int) -> Iterator[Account]:
    leads: dict[str, Callable[[Troupe], str]] = {
        "leads the first partition of the input": lambda troupe: troupe.journey.topic("input"),
        "leads the first partition of the state": lambda troupe: troupe.journey.topic("state"),
        "leads the rankings": lambda troupe: troupe.journey.topic("rankings"),
        "coordinates transactions": lambda _: TRANSACTIONS,
    }
    for what, topic in leads.items():
        yield scene.suffer(f"SIGKILL of the node that {what}", 1, kill_leader(topic))
    yield scene.suffer("SIGKILL of the node that coordinates the group", 1, kill_coordinator)
    yield kill_the_one(scene)
    each = len(scene.cluster.nodes) * rounds
    yield scene.suffer(
        "SIGKILL of each node in turn", each, lambda s, troupe: kill_each(s, troupe, rounds)
    )
    yield scene.suffer("SIGKILL of all nodes", 1, kill_all)


def kill_the_one(scene: Scene) -> Account:
    """The node that leads all partitions of all topics, and coordinates group and transactions.

    On a stream of its own, whose partitions are laid out so.
    """
    node = scene.leaders.unite(scene.cluster)
    nodes = [node, *(other for other in scene.cluster.nodes if other != node)]
    usual = scene.staged
    chunks = usual.content.chunks // usual.partitions
    where = (usual.bootstrap, usual.folder, usual.partitions, chunks, usual.start, nodes)
    with shared_stage(*where) as staged:
        return replace(scene, staged=staged).suffer(
            "SIGKILL of the node that leads input, state and rankings, and coordinates all",
            1,
            lambda s, troupe: kill_who_has_all(s, troupe, node),
            scene.leaders.make_topics(nodes),
        )


@contextmanager
def scene(folder: Path, partitions: int, chunks: int, start: Start) -> Iterator[Scene]:
    with (
        running_cluster(log_dir=folder) as cluster,
        shared_stage(cluster.bootstrap, folder, partitions, chunks, start) as staged,
    ):
        leaders = Leaders(cluster.bootstrap)
        leaders.await_sync()
        yield Scene(cluster, leaders, staged)


def run(options: Namespace) -> Iterator[Account]:
    """One journey for every fault, each against an undisturbed one."""
    with tempfile.TemporaryDirectory(prefix="stream-fs-campaign-") as folder:
        partitions, chunks = options.cluster_partitions, options.cluster_chunks
        with scene(Path(folder), partitions, chunks, Fresh) as made:
            yield from faults(made, options.cluster_rounds)


def arguments(add: AddArgument) -> None:
    add("--cluster-partitions", type=int, default=6, help="partitions of the stream")
    add("--cluster-chunks", type=int, default=60, help="chunks in each partition")
    add("--cluster-rounds", type=int, default=2, help="SIGKILLs of each node in turn")
