"""The Kafka implementation of the pipeline's ports, on confluent-kafka."""

from stream_fs.kafka.ranking_subscriber import RankingSubscriber
from stream_fs.kafka.record_producer import RateLimit, RecordProducer
from stream_fs.kafka.settings import ClientSettings, Rebalance
from stream_fs.kafka.topics import (
    Topics,
    TopicSpec,
    dead_letters_spec,
    input_spec,
    rankings_spec,
    state_spec,
)
from stream_fs.kafka.transport import KafkaTransport

__all__ = [
    "ClientSettings",
    "KafkaTransport",
    "RankingSubscriber",
    "RateLimit",
    "Rebalance",
    "RecordProducer",
    "TopicSpec",
    "Topics",
    "dead_letters_spec",
    "input_spec",
    "rankings_spec",
    "state_spec",
]
