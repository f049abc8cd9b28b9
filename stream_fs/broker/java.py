"""Apache Kafka as a process on this machine."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from stream_fs.broker import node
from stream_fs.broker.guarded_process import GuardedCommand
from stream_fs.broker.node import (
    CLUSTER_ID,
    CONTROLLER,
    PLAINTEXT,
    STARTED,
    Broker,
    BrokerUnavailable,
    Node,
    await_start,
    free_ports,
    render,
    server_properties,
)
from stream_fs.broker.toolchain import Toolchain

_HOST: Final = "127.0.0.1"
_LOGGING: Final = """\
status = warn
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
logger.server.name = kafka.server.KafkaRaftServer
logger.server.level = info
"""


class JavaBroker(Broker):
    """One Kafka node as a guarded process; its data is in ``scratch``, which the caller removes."""

    def __init__(
        self,
        tools: Toolchain,
        *,
        scratch: Path,
        log_dir: Path,
        protocols: Mapping[str, str],
        properties: Mapping[str, str],
        nodes: Sequence[Node] = (),
        number: int = 1,
        options: Sequence[str] = ("-Xmx512m",),
    ) -> None:
        """Write the configuration without starting the node.

        ``nodes`` are all nodes of the cluster, of which this is the one with id ``number``; without
        them, it is the only one. ``options`` are options of Java.
        """
        self._nodes = nodes or [local_node(1, scratch, protocols)]
        (self._node,) = (node for node in self._nodes if node.id == number)
        self._tools = tools
        self._scratch = scratch
        self._options = options
        self._log = log_dir / f"broker-{self._node.ports[PLAINTEXT]}.log"
        self._formatting: GuardedCommand | None = None
        self._process: GuardedCommand | None = None
        self._announced = 0
        self._server = scratch / f"server-{number}.properties"
        self._logging = scratch / "log4j2.properties"
        generated = server_properties(self._node, self._nodes, protocols, properties)
        self._server.write_text(render(generated), encoding="utf-8")
        self._logging.write_text(_LOGGING, encoding="utf-8")

    def address(self, listener: str) -> str:
        """``host:port`` of a listener by its name."""
        return self._node.address(listener)

    def start(self) -> None:
        """Format the storage if needed, start the server, and wait until it answers."""
        self.launch()
        self.await_start()

    def prepare(self) -> None:
        """Start formatting the storage, unless it exists."""
        if not Path(self._node.data).exists() and self._formatting is None:
            arguments = ["format", "-t", CLUSTER_ID, "-c", str(self._server)]
            self._formatting = self._java(
                "kafka.tools.StorageTool", *arguments, *cluster_options(self._nodes)
            )

    def launch(self) -> None:
        """Start the server without waiting: a cluster answers when most of its nodes run."""
        if self._running():
            return
        self.prepare()
        self._await_format()
        self._announced = node.read(self._log).count(STARTED)
        self._process = self._java("kafka.Kafka", str(self._server))

    def await_start(self) -> None:
        """Wait until it answers."""
        try:
            await_start(
                self.bootstrap,
                announced=lambda: node.read(self._log).count(STARTED) > self._announced,
                running=self._running,
            )
        except BrokerUnavailable as reason:
            self.kill()
            raise self._with_log(reason) from None

    def stop(self) -> None:
        """Shut Kafka down gracefully."""
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        if self._formatting is not None:
            self._formatting.kill()
        if self._process is not None:
            self._process.kill()

    def log_tail(self, lines: int = 40) -> str:
        """The last lines of Kafka's output."""
        return node.tail(self._log, lines)

    def _running(self) -> bool:
        return self._process is not None and self._process.running()

    def _await_format(self) -> None:
        if self._formatting is None:
            return
        status, self._formatting = self._formatting.wait(), None
        if status != 0:
            reason = BrokerUnavailable(f"the storage could not be formatted (status {status})")
            raise self._with_log(reason)

    def _java(self, main_class: str, *arguments: str) -> GuardedCommand:
        assert self._tools.java is not None
        jars = self._tools.fetch()
        options = [f"-Dlog4j2.configurationFile={self._logging}", "-cp", f"{jars}/*"]
        command = [self._tools.java, *self._options, *options, main_class, *arguments]
        return GuardedCommand(command, output=self._log, scratch=self._scratch)

    def _with_log(self, reason: BrokerUnavailable) -> BrokerUnavailable:
        return BrokerUnavailable(f"{reason}; the end of {self._log.name}:\n{self.log_tail()}")


def local_node(
    number: int,
    scratch: Path,
    protocols: Mapping[str, str],
    advertised: Mapping[str, str] | None = None,
) -> Node:
    """A node on free ports of this machine, reachable from this machine only."""
    listeners = [*protocols, CONTROLLER]
    return Node(
        id=number,
        host=_HOST,
        bind=_HOST,
        ports=dict(zip(listeners, free_ports(len(listeners)), strict=True)),
        data=str(scratch / f"data-{number}"),
        advertised=advertised or {},
    )


def cluster_options(nodes: Sequence[Node]) -> list[str]:
    """The options of the storage tool that name the nodes that form a cluster.

    Every node has to know the ids of all directories: sixteen bytes in base64.
    """
    if len(nodes) == 1:
        return ["--standalone"]
    ids = {n.id: base64.urlsafe_b64encode(b"stream-fs-node-%d" % n.id).decode() for n in nodes}
    found = [f"{n.id}@{n.address(CONTROLLER)}:{ids[n.id].rstrip('=')}" for n in nodes]
    return ["--initial-controllers", ",".join(found)]
