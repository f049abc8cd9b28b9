"""Reading, updating and both: against the least that any program must do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle

from stream_fs.pipeline.chunker import Chunker
from stream_fs.pipeline.ports import Partition
from stream_fs.records import Message
from stream_fs.selector import Chunk, initial_state, rank, update
from stream_fs.wire import RecordDecoder
from stream_fs.wire.rankings.message import published_counts
from tests.benchmarks.measure import Comparison, Goal, Seconds
from tests.benchmarks.service.input_topics import Source, Stream, Workspace
from tests.benchmarks.service.plan import Plan
from tests.benchmarks.service.reading import BLIND, CHUNK, DECODING, ingest, raw
from tests.benchmarks.service.records import DIFFERENT, Mix
from tests.benchmarks.service.service_process import COMMITTED, ServiceProcess
from tests.support.markdown_table import median
from tests.support.settings import dead_letter_settings

INGEST = Goal("≥", 0.7)
WHOLE = Goal("≥", 0.9)
TIMES = 3
"""As many turns as usual, end to end."""
SPARE = 3
"""Chunks of a turn that are not timed."""
TRANSACTION_CHUNKS = 10
"""Chunks in a transaction, at most: a snapshot ends it."""


def reading(workspace: Workspace, plan: Plan) -> Iterator[Comparison]:
    """Ingest against loops that do less, down to the client alone; a larger share is faster.

    The goal is against the faster one of those that decode.
    """
    loops: dict[str, Callable[[Workspace, Source], float]] = {
        "raw consume": raw,
        **BLIND,
        **DECODING,
    }
    for size, count in plan.ingest:
        with workspace.source(Mix.of_bytes(size), count) as source:
            taken = plan.turns_of(
                {
                    **{name: partial(loop, workspace, source) for name, loop in loops.items()},
                    "ingest": partial(ingest, workspace, source),
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


def whole(workspace: Workspace, plan: Plan) -> Iterator[Comparison]:
    """The service, a process with everything on, against ingest and then the selector alone.

    They differ by some percent, and the machine varies by more from one second to the next: so they
    take many short turns. One process serves all turns, stopped between its own.
    """
    for size, _ in plan.ingest:
        chunks = plan.slice if size <= 1_000 else plan.slice // 2
        # One turn more to warm up, one for the beginning, and in each the rest of a transaction.
        needed = (TIMES * plan.turns + 2) * (
            SPARE + chunks + TRANSACTION_CHUNKS
        ) + 2 * TRANSACTION_CHUNKS
        with (
            workspace.source(Mix.of_bytes(size), needed * CHUNK) as source,
            workspace.stream(source) as stream,
            ServiceProcess(stream) as process,
        ):
            process.wait_for(COMMITTED, SPARE)
            process.pause()
            selector = SelectorAlone(stream)
            taken = plan.turns_of(
                {
                    "ingest": partial(ingest, workspace, source),
                    "selector": partial(selector.process_chunks, chunks),
                    "service": partial(service, process, chunks),
                },
                TIMES,
            )
        # All of the source is read each time.
        share = chunks * CHUNK / source.count
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


class SelectorAlone:
    """The selector on the chunks that the service makes of the source: updates and rankings."""

    def __init__(self, stream: Stream) -> None:
        settings = stream.configuration.stream_settings()
        self._chunks = cycle(cut(stream, DIFFERENT // CHUNK))
        self._top = published_counts(settings.params, settings.output_top)
        origin = settings.origin(Partition(stream.source.topic, 0))
        self._state, _ = update(initial_state(settings.params, origin), next(self._chunks))

    def process_chunks(self, chunks: int) -> float:
        """Seconds of so many more."""
        for _ in range(SPARE):  # as many as the service processes before it is timed
            self._update_and_rank()
        begin = time.perf_counter()
        for _ in range(chunks):
            self._update_and_rank()
        return time.perf_counter() - begin

    def _update_and_rank(self) -> None:
        self._state, _ = update(self._state, next(self._chunks))
        rank(self._state, self._top)


def service(process: ServiceProcess, chunks: int) -> float:
    """Seconds from commit to commit of so many chunks, by the process's own log.

    Not of the first ones: until these the broker was ahead. From the end of a transaction to that
    of a later one, and in proportion: it may hold several chunks.
    """
    process.poll()
    first = len(process.times_of(COMMITTED)) + SPARE
    process.resume()
    begin = process.transaction(first)
    end = process.transaction(begin.chunks + chunks)
    process.pause()
    return (end.at - begin.at) / (end.chunks - begin.chunks) * chunks


def cut(stream: Stream, count: int) -> list[Chunk]:
    """The first chunks that the service makes of the source; they are repeated."""
    settings = stream.configuration.stream_settings()
    decoder = RecordDecoder(settings.views)
    chunker = Chunker(decoder, dead_letter_settings(), 0, settled=0)
    values = stream.source.mix.records(count * CHUNK)
    chunker.add(
        [
            Message(stream.source.topic, 0, offset, 0, None, value)
            for offset, value in enumerate(values)
        ]
    )
    found: list[Chunk] = []
    while (ready := chunker.take(len(found) + 1, settings.chunk_policy)) is not None:
        found.append(ready.chunk)
    return found
