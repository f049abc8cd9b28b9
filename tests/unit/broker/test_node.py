"""The server.properties of a node."""

from __future__ import annotations

from stream_fs.broker.node import CONTROLLER, Node, render, server_properties


def test_the_nodes_of_a_cluster_know_each_other() -> None:
    names = ["PLAINTEXT", CONTROLLER]
    nodes = [
        Node(
            id=number,
            host="localhost",
            bind="0.0.0.0",
            ports={name: 10 * number + at for at, name in enumerate(names)},
            data=f"data-{number}",
        )
        for number in (1, 2, 3)
    ]
    protocols = {"PLAINTEXT": "PLAINTEXT"}
    second = server_properties(nodes[1], nodes, protocols, {"log.dirs": "elsewhere"})
    quorum = "127.0.0.1:11,127.0.0.1:21,127.0.0.1:31"
    assert second["controller.quorum.bootstrap.servers"] == quorum
    assert second["listeners"] == "PLAINTEXT://0.0.0.0:20,CONTROLLER://127.0.0.1:21"
    assert second["advertised.listeners"] == "PLAINTEXT://localhost:20"
    assert second["offsets.topic.replication.factor"] == "3"
    assert second["transaction.state.log.min.isr"] == "2"
    assert second["log.dirs"] == "elsewhere"


def test_properties_survive_the_format_of_their_file() -> None:
    assert render({"a": "C:\\x\ny", "b": "1"}) == "a=C:\\\\x\\ny\nb=1\n"
