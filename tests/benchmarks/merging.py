"""`python -m tests.benchmarks.merging`: what the merge costs, by features and partitions.

In seconds of the processor: what a chunk of 500 records takes its partition (without a ranking),
what one snapshot takes it to write and the merge to read, and what the merge and the ranking after
it (of all features, or of the top 50) take with all partitions, while the tasks of that process
wait.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

from threadpoolctl import threadpool_limits

from stream_fs.checkpoint import decode_snapshot, encode_snapshot
from stream_fs.selector import State, initial_state, params, rank, update
from stream_fs.selector.merge.combine import merge
from stream_fs.wire.rankings.message import published_counts
from tests.benchmarks.measure import peak_bytes, take_turns
from tests.benchmarks.workload import Shape, stream
from tests.support.markdown_table import aligned

DIMENSIONS = (250, 2500, 25_000)
"""Features in each of two views: with ten clusters, 5,000 to 500,000 doubles in a d×K matrix."""
PARTITIONS = (4, 16, 64)
DIFFERENT = 4
"""Models that are really trained; the others have the same sums."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.merging", description=__doc__)
    parser.add_argument("--dimensions", type=int, nargs="+", default=DIMENSIONS)
    parser.add_argument("--partitions", type=int, nargs="+", default=PARTITIONS)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    head = ["shape", "partitions", "update s", "snapshot MB", "write s", "read s", "MB to read"]
    with threadpool_limits(1):
        rows = [
            row
            for dimension in options.dimensions
            for row in measured(Shape(dimension), options.partitions, options.turns)
        ]
    print("\n".join(aligned([*head, "merge s", "rank s", "top 50 s"], rows)))
    return 0


def measured(shape: Shape, partitions: Sequence[int], turns: int) -> Iterator[list[str]]:
    """A row for each number of partitions."""
    chosen = params(shape.declared, shape.clusters)
    trained = [_trained(initial_state(chosen, str(n)), shape, n) for n in range(DIFFERENT)]
    following = next(stream(shape, DIFFERENT))
    saved = encode_snapshot(trained[0], 0, {})
    size = len(saved.manifest) + sum(map(len, saved.parts))
    held = peak_bytes(lambda: decode_snapshot(saved.manifest, saved.parts, chosen).state)
    for count in partitions:
        states = [trained[number % DIFFERENT] for number in range(count)]
        merged = merge(states)
        taken = take_turns(
            {
                "update": partial(update, trained[0], following),
                "write": partial(encode_snapshot, trained[0], 0, {}),
                "read": partial(decode_snapshot, saved.manifest, saved.parts, chosen),
                "merge": partial(merge, states),
                "rank": partial(rank, merged),
                "top": partial(rank, merged, published_counts(chosen, 50)),
            },
            turns,
        )
        seconds = {name: f"{sorted(times)[len(times) // 2]:.4f}" for name, times in taken.items()}
        yield [
            str(shape),
            str(count),
            seconds["update"],
            f"{size / 1e6:.2f}",
            seconds["write"],
            seconds["read"],
            f"{held / 1e6:.2f}",
            seconds["merge"],
            seconds["rank"],
            seconds["top"],
        ]


def _trained(state: State, shape: Shape, seed: int) -> State:
    for chunk in islice(stream(shape, seed), 2):
        state, _ = update(state, chunk)
    return state


if __name__ == "__main__":
    sys.exit(main())
