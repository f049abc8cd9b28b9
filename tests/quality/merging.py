"""What merging partitions costs, as table and plot: ``python -m tests.quality.merging``."""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np

from stream_fs.evaluate.data import DataSet, IncompleteViews, load_set
from stream_fs.evaluate.long_stream import long_stream
from stream_fs.evaluate.merging import WAYS, MergingRow, MergingSettings, Stream, measure_merging
from stream_fs.evaluate.merging_figures import plot, table
from stream_fs.evaluate.removal import remove_views


def main() -> None:
    options = parse()
    known = read(options.rows) if options.rows else []
    done = {(row.name, row.cut, row.seed) for row in known}
    for seed in range(options.first, options.first + options.removals):
        for dataset in sets(options, seed):
            for cut in options.cuts:
                if (dataset.name, cut, seed) in done:
                    continue
                settings = MergingSettings(
                    partitions=tuple(options.partitions),
                    least_rows=options.least_rows,
                    cut=cut,
                    methods=tuple(options.methods),
                )
                rows = list(measure_merging(incomplete(dataset, seed, options.missing), settings))
                known += rows
                if options.rows:
                    with options.rows.open("a", encoding="utf-8") as file:
                        file.writelines(json.dumps(asdict(row)) + "\n" for row in rows)
                print(f"{dataset.name} {cut} {seed}: {len(rows)} rows", file=sys.stderr, flush=True)
    print(table(known))
    if options.plot:
        plot(known, options.plot)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.quality.merging", description=__doc__)
    add = parser.add_argument
    add("--data", type=Path, help="directory with .npz sets; without it only the synthetic stream")
    add("--sets", nargs="*", default=["UCIDigits", "Caltech101-7", "USPS"])
    add("--synthetic", type=int, default=10_240, help="rows of the synthetic stream; 0: without")
    add("--removals", type=int, default=5, help="repetitions with other views removed")
    add("--first", type=int, default=0, help="number of the first repetition")
    add("--missing", type=float, default=0.5, help="share of every view's instances removed")
    add("--partitions", nargs="+", type=int, default=[1, 2, 4, 8, 16, 32])
    add("--least-rows", type=int, default=40, help="rows per cluster that a partition must have")
    add("--methods", nargs="+", choices=WAYS, default=list(WAYS))
    add("--cuts", nargs="+", choices=["even", "keyed"], default=["even"])
    add("--rows", type=Path, help="JSON-lines file: rows in it are kept, new ones added")
    add("--plot", type=Path, help="where to write the plot")
    return parser.parse_args()


def sets(options: argparse.Namespace, seed: int) -> Iterator[DataSet]:
    if options.data:
        for name in options.sets:
            yield load_set(options.data, name)
    if options.synthetic:
        yield long_stream(options.synthetic, seed)


def incomplete(dataset: DataSet, seed: int, missing: float) -> Stream:
    """Take views away and shuffle the rows, as the other measurements do."""
    generator = np.random.default_rng(seed)
    present = remove_views(dataset.instances, len(dataset.views), missing, generator)
    order = generator.permutation(dataset.instances)
    data = IncompleteViews(tuple(x[order] for x in dataset.views), present[order])
    return Stream(dataset.name, data, dataset.labels[order], dataset.classes, seed)


def read(path: Path) -> list[MergingRow]:
    if not path.exists():
        return []
    return [MergingRow(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]


if __name__ == "__main__":
    main()
