"""The only code that knows Kafka: what the pipeline needs of a broker, on confluent-kafka."""

from stream_fs.kafka.settings import ClientSettings, Rebalance
from stream_fs.kafka.transport import KafkaTransport

__all__ = ["ClientSettings", "KafkaTransport", "Rebalance"]
