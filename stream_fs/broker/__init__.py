"""A Kafka broker for tests and the demo, taken from the first of these that applies.

1. The address in ``STREAM_FS_BOOTSTRAP``: an existing broker.
2. Docker, when an engine answers: the ``apache/kafka`` image, through testcontainers.
3. Java 17 or newer: Apache Kafka from Maven Central, cached in the user's cache directory.

>>> with running_broker() as broker:  # doctest: +SKIP
...     print(broker.bootstrap)
127.0.0.1:21873

The second and the third kind can be stopped and started again (`Broker.stop`, `Broker.kill`,
`Broker.start`) with the same addresses and data. They are removed completely, even when the process
that has started them is killed.
"""

from stream_fs.broker.node import Broker, BrokerNotOwned, BrokerUnavailable
from stream_fs.broker.session import BOOTSTRAP_VARIABLE, running_broker

__all__ = [
    "BOOTSTRAP_VARIABLE",
    "Broker",
    "BrokerNotOwned",
    "BrokerUnavailable",
    "running_broker",
]
