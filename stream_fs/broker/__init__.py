"""A Kafka broker for tests and the demo, taken from the first of these that applies.

1. The address in ``STREAM_FS_BOOTSTRAP``: a broker that somebody else runs.
2. Docker, when an engine answers: the ``apache/kafka`` image through testcontainers.
3. Java 17 or newer: Apache Kafka from Maven Central, kept in the user's cache directory.

>>> with running_broker() as broker:  # doctest: +SKIP
...     print(broker.bootstrap)
127.0.0.1:21873

The second and the third kind can be taken away and brought back (`Broker.stop`, `Broker.kill`,
`Broker.start`) with the same addresses and data, and leave nothing behind, however the process
that asked for them ends.
"""

from stream_fs.broker.node import Broker, BrokerNotOurs, BrokerUnavailable
from stream_fs.broker.session import BOOTSTRAP_VARIABLE, running_broker

__all__ = [
    "BOOTSTRAP_VARIABLE",
    "Broker",
    "BrokerNotOurs",
    "BrokerUnavailable",
    "running_broker",
]
