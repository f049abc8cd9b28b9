"""Codecs of everything that travels: records in, rankings and dead letters out. No Kafka here.

values ─ RecordDecoder.decode ─ Batch ─ take, to_chunk ─ selector
ranking, report ─ ranking_message ─ publish ─ key, value, headers
"""

from stream_fs.wire.dead_letters import dead_letter
from stream_fs.wire.declared import DeclaredView, Dtype, Format, Limits
from stream_fs.wire.rankings.codec import (
    as_json,
    decode_ranking,
    digest,
    encode_ranking,
    has_digest,
    publish,
    ranking_format,
)
from stream_fs.wire.rankings.message import (
    Continuity,
    RankingMessage,
    Source,
    Top,
    merged_message,
    published_counts,
    ranking_message,
)
from stream_fs.wire.rankings.size import largest_ranking
from stream_fs.wire.records.batch import Batch, BatchView, to_chunk
from stream_fs.wire.records.decoder import RecordDecoder
from stream_fs.wire.records.encoder import Sparse, encode_record

__all__ = [
    "Batch",
    "BatchView",
    "Continuity",
    "DeclaredView",
    "Dtype",
    "Format",
    "Limits",
    "RankingMessage",
    "RecordDecoder",
    "Source",
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
    "publish",
    "published_counts",
    "ranking_format",
    "ranking_message",
    "to_chunk",
]
