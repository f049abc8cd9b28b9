"""Reading, deciding and both: against what nobody can do without."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

from stream_fs.pipeline.chunker import Chunker
from stream_fs.pipeline.ports import Partition
from stream_fs.pipeline.settings import DeadLetterSettings
from stream_fs.records import Message
from stream_fs.selector import Chunk, initial_state, rank, update
from stream_fs.wire import RecordDecoder
from stream_fs.wire.rankings import top_counts
from tests.benchmarks.measure import Comparison, Goal, Seconds
from tests.benchmarks.service.life import COMMITTED, Life
from tests.benchmarks.service.plan import Plan
from tests.benchmarks.service.reading import BLIND, CHUNK, DECODING, ingest, raw
from tests.benchmarks.service.records import Mix
from tests.benchmarks.service.stage import Source, Stage, Stream
from tests.benchmarks.table import median

INGEST = Goal("≥", 0.7)
WHOLE = Goal("≥", 0.9)


def reading(stage: Stage, plan: Plan) -> Iterator[Comparison]:
    """Ingest against loops that do less, down to the client alone; who is faster has more.

    The goal is against the faster one of those that decode.
    """
    loops: dict[str, Callable[[Stage, Source], float]] = {"raw consume": raw, **BLIND, **DECODING}
    for size, count in plan.ingest:
        with stage.source(Mix.of_bytes(size), count) as source:
            taken = plan.turns_of(
                {
                    **{name: partial(loop, stage, source) for name, loop in loops.items()},
                    "ingest": partial(ingest, stage, source),
                },
            )
        shape = f"{source.record_bytes / 1000:.1f} kB, {source.mix}"
        fastest = min(DECODING, key=lambda name: median(taken[name]))
        for name in sorted(loops, key=lambda name: name != fastest):
            yield Comparison(
                "reading",
                f"ingest as a share of the {name}",
                shape,
                name,
                "ingest",
                taken[name],
                taken["ingest"],
                INGEST if name == fastest else None,
                count,
            )


def whole(stage: Stage, plan: Plan) -> Iterator[Comparison]:
    """The service, a process with everything on, against ingest and then the selector alone."""
    for size, count in plan.ingest:
        chunks = min(plan.chunks, count // CHUNK // 2)
        with (
            stage.source(Mix.of_bytes(size), (1 + chunks) * CHUNK) as source,
            stage.stream(source) as stream,
        ):
            taken = plan.turns_of(
                {
                    "ingest": partial(ingest, stage, source),
                    "selector": partial(selector, stream, cut(stream)),
                    "service": partial(service, stage, source),
                },
                # Both are the same but for some percent, and the machine's pace changes by more.
                times=3,
            )
        # All of the source is read, but the selector and the service are timed from chunk 2 on.
        share = chunks / (1 + chunks)
        floor: Seconds = tuple(
            read * share + decided
            for read, decided in zip(taken["ingest"], taken["selector"], strict=True)
        )
        shape = f"{source.record_bytes / 1000:.1f} kB, {source.mix}, K 10, N {CHUNK}"
        yield Comparison(
            "whole",
            "service as a share of ingest, then selector",
            shape,
            "ingest + selector",
            "service",
            floor,
            taken["service"],
            WHOLE,
            chunks * CHUNK,
        )
        yield Comparison(
            "whole",
            "ingest against the selector",
            shape,
            "ingest",
            "selector",
            tuple(read * share for read in taken["ingest"]),
            taken["selector"],
            None,
            chunks * CHUNK,
        )


def selector(stream: Stream, chunks: list[Chunk]) -> float:
    """Seconds of updates and rankings alone, behind the first chunk; as in the service."""
    settings = stream.configuration.stream_settings()
    top = top_counts(settings.params, settings.output_top)
    origin = settings.origin(Partition(stream.source.topic, 0))
    state, _ = update(initial_state(settings.params, origin), chunks[0])
    begin = time.perf_counter()
    for chunk in chunks[1:]:
        state, _ = update(state, chunk)
        rank(state, top)
    return time.perf_counter() - begin


def service(stage: Stage, source: Source) -> float:
    """Seconds from the first commit to the last, by the process's own log."""
    with stage.stream(source) as stream, Life(stream) as life:
        commits = life.follow(COMMITTED, stream.chunks)
        return commits[-1] - commits[0]


def cut(stream: Stream) -> list[Chunk]:
    """The chunks that the service makes of the source."""
    settings = stream.configuration.stream_settings()
    decoder = RecordDecoder(settings.views)
    chunker = Chunker(decoder, DeadLetterSettings(), 0)
    records = stream.source.mix.records(stream.source.count)
    values = [records[number % len(records)] for number in range(stream.source.count)]
    chunker.add(
        [
            Message(stream.source.topic, 0, offset, 0, None, value)
            for offset, value in enumerate(values)
        ]
    )
    found: list[Chunk] = []
    while (ready := chunker.take(len(found) + 1, settings.cut)) is not None:
        found.append(ready.chunk)
    return found
