"""A cluster of Apache Kafka on this machine, whose nodes can be stopped one by one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from stream_fs.broker.guarded_process import guarded_directory
from stream_fs.broker.java import JavaBroker, local_node
from stream_fs.broker.node import PLAINTEXT, BrokerUnavailable
from stream_fs.broker.toolchain import Toolchain

_OPTIONS: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Options of Java for small nodes that start fast."""


class Cluster:
    """Nodes by id; of three, one may be down."""

    def __init__(self, nodes: Mapping[int, JavaBroker]) -> None:
        self.nodes = nodes

    @property
    def bootstrap(self) -> str:
        """``host:port`` of the plain listeners of all nodes."""
        return self.address(PLAINTEXT)

    def address(self, listener: str) -> str:
        """``host:port`` of a listener of all nodes, separated by commas."""
        return ",".join(node.address(listener) for node in self.nodes.values())

    def start(self) -> None:
        """Start all nodes that do not run; returns when each of them answers."""
        for node in self.nodes.values():
            node.prepare()
        for node in self.nodes.values():
            node.launch()
        for node in self.nodes.values():
            node.await_start()

    def kill(self) -> None:
        """End all nodes with SIGKILL."""
        for node in self.nodes.values():
            node.kill()


@contextmanager
def running_cluster(
    count: int = 3,
    *,
    log_dir: Path | None = None,
    listeners: Mapping[str, str] | None = None,
    advertised: Mapping[int, Mapping[str, str]] | None = None,
) -> Iterator[Cluster]:
    """A running cluster of processes, without Docker; it is removed at the end.

    ``listeners`` are further listeners beside the plain one, name to security protocol.
    ``advertised`` replaces, by node and listener, the ``host:port`` that clients get. Topics have a
    replica on every node and are written by a majority.

    Raises `BrokerUnavailable` without Java, or when a node does not start.
    """
    tools = Toolchain.found(os.environ)
    if missing := tools.missing():
        raise BrokerUnavailable("\n  - ".join(["a cluster of brokers cannot run here", *missing]))
    protocols = {PLAINTEXT: PLAINTEXT, **(listeners or {})}
    with guarded_directory("stream-fs-cluster-") as scratch:
        nodes = [
            local_node(number, scratch, protocols, (advertised or {}).get(number))
            for number in range(1, count + 1)
        ]
        logs = log_dir or scratch
        logs.mkdir(parents=True, exist_ok=True)
        brokers = {
            node.id: JavaBroker(
                tools,
                scratch=scratch,
                log_dir=logs,
                protocols=protocols,
                properties={},
                nodes=nodes,
                number=node.id,
                options=_OPTIONS,
            )
            for node in nodes
        }
        cluster = Cluster(brokers)
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.kill()
