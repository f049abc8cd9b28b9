"""Nodes of a cluster killed and brought back, one at a time and all at once.

Three nodes, three replicas of everything, two of which have to be in sync: with one node gone,
every partition has to go on.
"""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stream_fs.broker.cluster import Cluster, running_cluster
from tests.campaign.account import Account, AddArgument
from tests.campaign.leaders import GROUPS, TRANSACTIONS, Leaders
from tests.campaign.troupe import QUICK, Troupe, failed, judged, shared_stage
from tests.recovery.journey import Journey
from tests.recovery.stage import Stage
from tests.recovery.starting import Fresh, Start


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
                with Troupe(journey) as troupe:
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
        led = [
            f"{scene.leaders.share(node, troupe.journey.topic(what))} of {what}"
            for what in ("input", "state", "rankings", "letters")
        ]
        led += [
            what
            for what, place in (("groups", GROUPS), ("transactions", TRANSACTIONS))
            if scene.leaders.of(place) == node
        ]
        return f"it led {', '.join(led)}; went on in {kill(scene, troupe, node):.0f} s"

    return inflict


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
        "leads input": lambda troupe: troupe.journey.topic("input"),
        "leads state": lambda troupe: troupe.journey.topic("state"),
        "leads rankings": lambda troupe: troupe.journey.topic("rankings"),
        "coordinates the group": lambda _: GROUPS,
        "coordinates transactions": lambda _: TRANSACTIONS,
    }
    for what, topic in leads.items():
        yield scene.suffer(f"SIGKILL of the node that {what}", 1, kill_leader(topic))
    yield kill_the_one(scene)
    each = len(scene.cluster.nodes) * rounds
    yield scene.suffer(
        "SIGKILL of each node in turn", each, lambda s, troupe: kill_each(s, troupe, rounds)
    )
    yield scene.suffer("SIGKILL of all nodes", 1, kill_all)


def kill_the_one(scene: Scene) -> Account:
    """The node that coordinates transactions, where it leads all that is written, too."""
    node = scene.leaders.of(TRANSACTIONS)
    make = scene.leaders.make_topics(node, len(scene.cluster.nodes))
    inflict = kill_leader(lambda _: TRANSACTIONS)
    return scene.suffer("SIGKILL of the node that leads all and coordinates", 1, inflict, make)


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
