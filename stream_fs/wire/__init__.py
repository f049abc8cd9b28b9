"""Codecs of messages: records in, rankings and dead letters out. Knows nothing of Kafka.

values ─ RecordDecoder.decode ─ Batch ─ take, to_chunk ─ selector
ranking, report ─ ranking_message ─ publish ─ key, value, headers
"""

from stream_fs.wire.dead_letters import dead_letter
from stream_fs.wire.declared import DeclaredView, Dtype, Limits
from stream_fs.wire.rankings.codec import (
    RankingFormat,
    as_json,
    decode_ranking,
    digest,
    encode_ranking,
    has_digest,
    ranking_format,
    ranking_payload,
)
from stream_fs.wire.rankings.message import (
    Continuity,
    RankingMessage,
    RankingSource,
    Top,
    merged_message,
    published_counts,
    ranking_message,
)
from stream_fs.wire.rankings.size import largest_ranking
from stream_fs.wire.records.batch import Batch, BatchView, to_chunk
from stream_fs.wire.records.decoder import RecordDecoder
from stream_fs.wire.records.encoder import Sparse, encode_record
from stream_fs.wire.records.formats import DEFAULT_FORMAT, FORMATS, RecordFormat

__all__ = [
    "DEFAULT_FORMAT",
    "FORMATS",
    "Batch",
    "BatchView",
    "Continuity",
    "DeclaredView",
    "Dtype",
    "Limits",
    "RankingFormat",
    "RankingMessage",
    "RankingSource",
    "RecordDecoder",
    "RecordFormat",
    "Sparse",
    "Top",
    "as_json",
    "dead_letter",
    "decode_ranking",
    "digest",
    "encode_ranking",
    "encode_record",
    "has_digest",
    "largest_ranking",
    "merged_message",
    "published_counts",
    "ranking_format",
    "ranking_message",
    "ranking_payload",
    "to_chunk",
]
