"""The only code that knows Kafka: what the pipeline needs of a broker, on confluent-kafka."""

from stream_fs.kafka.ranking_subscriber import Subscriber
from stream_fs.kafka.record_producer import RateLimit, RecordProducer
from stream_fs.kafka.settings import ClientSettings, Rebalance
from stream_fs.kafka.topics import (
    Topics,
    TopicSpec,
    dead_letters_plan,
    input_plan,
    rankings_plan,
    state_plan,
)
from stream_fs.kafka.transport import KafkaTransport

__all__ = [
    "ClientSettings",
    "KafkaTransport",
    "RateLimit",
    "Rebalance",
    "RecordProducer",
    "Subscriber",
    "TopicSpec",
    "Topics",
    "dead_letters_plan",
    "input_plan",
    "rankings_plan",
    "state_plan",
]
