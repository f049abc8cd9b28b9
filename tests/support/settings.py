"""Settings of the pipeline with the defaults of the configuration."""

from __future__ import annotations

from typing import Any

from stream_fs.checkpoint import PART_BYTES
from stream_fs.pipeline.settings import DeadLetterSettings, StreamSettings
from stream_fs.service.configuration import sections
from stream_fs.wire.dead_letters import dead_letter_limit
from stream_fs.wire.declared import Limits


def default(section: type[sections.Section], key: str) -> Any:
    """The default of a key of the configuration."""
    return section.model_fields[key].default


def dead_letter_settings(**changes: Any) -> DeadLetterSettings:
    keys = ("policy", "max_ratio", "tolerated", "max_open", "max_open_bytes")
    values = {key: default(sections.DeadLettersSection, key) for key in keys}
    largest = dead_letter_limit(default(sections.KafkaSection, "largest_message"))
    return DeadLetterSettings(**{**values, "largest": largest, **changes})


def stream_settings(**values: Any) -> StreamSettings:
    """Settings with these values, among them all that have no default."""
    defaults: dict[str, Any] = {
        "record_format": default(sections.StreamSection, "format"),
        "limits": Limits(),
        "chunk_records": default(sections.ChunkSection, "records"),
        "chunk_max_span": default(sections.ChunkSection, "max_span"),
        "checkpoint_every": default(sections.CheckpointSection, "every_chunks"),
        "part_bytes": PART_BYTES,
        "output_top": None,
        "output_format": default(sections.OutputSection, "format"),
        "linger": default(sections.OutputSection, "linger_seconds"),
        "dead_letters": dead_letter_settings(),
        "merge_every": default(sections.MergeSection, "every_seconds"),
        "start": default(sections.StreamSection, "start"),
    }
    return StreamSettings(**{**defaults, **values})
