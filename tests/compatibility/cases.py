"""What is run on both sides: configurations, inputs, and the processes that work through them.

A job is plain data, so that it can be handed to another interpreter:

    config   the configuration file
    start    the topics as they are found, by name; none: empty ones
    steps    ["produce", partition, messages]
             ["process", settings]: one with or without `merge`, and perhaps with a `crash` at the
             n-th occurrence of a step of a commit; in the end it shuts down or is killed
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tests.compatibility.streams import (
    CLUSTERS,
    LARGEST_RECORD,
    Encoding,
    Input,
    dimensions,
    messages,
)

Job = dict[str, Any]
Step = list[Any]

TOPIC: Final = "in"
STATE: Final = "in.state"
RANKINGS: Final = "out"
LETTERS: Final = "dead"
PARTITIONS: Final = 2
CHUNK: Final = 25
FIRST_CHUNK: Final = 60
SNAPSHOT_EVERY: Final = 3
_EARLIER: Final = (135, 90)
"""Good records in the first half of each partition; some are left behind its last full chunk."""
_LATER: Final = (100, 75)

_CONFIGURATION: Final = """\
[stream]
name = "golden"
topics = ["in"]
format = "{format}"
{views}
[selector]
clusters = {clusters}
preset = "{preset}"
seed = 5
{selector}
[chunk]
records = {chunk}
{cut}
[checkpoint]
every_chunks = {every}
[merge]
every_seconds = 1
[output]
topic = "out"
{output}
[dead_letters]
topic = "dead"
{letters}
[limits]
record_bytes = {largest}
[kafka]
bootstrap = "localhost:1"
group = "group / of golden"
{kafka}
[service]
port = 0
"""


@dataclass(frozen=True)
class Case:
    """One stream and its configuration; the texts are lines of their sections."""

    name: str
    encoding: Encoding
    preset: str = "default"
    transform: str | None = None
    named: bool = False
    linger: float = 0.0
    selector: str = "sketch = 8"
    cut: str = ""
    output: str = ""
    letters: str = ""
    kafka: str = ""
    jumps: bool = False
    tolerance: float = 1e-4
    """Of its numbers on another machine, where no feature changed its place on any that was tried:
    most cases compute in single precision, and the iterations of `paper` magnify what rounding
    does."""

    @property
    def format(self) -> str:
        """The format of its records."""
        return "json" if "json" in self.encoding else "msgpack"

    @property
    def config(self) -> str:
        """Its configuration file."""
        return _CONFIGURATION.format(
            format=self.format,
            views="".join(self._view(*view) for view in dimensions(self.encoding).items()),
            clusters=CLUSTERS,
            preset=self.preset,
            selector=self.selector,
            chunk=CHUNK,
            cut=self.cut,
            every=SNAPSHOT_EVERY,
            output=f"linger_seconds = {self.linger}\n{self.output}",
            letters=self.letters,
            largest=LARGEST_RECORD,
            kafka=self.kafka,
        )

    @property
    def rankings(self) -> int:
        """How many are published of all partitions, where a first chunk needs `FIRST_CHUNK`."""
        first = FIRST_CHUNK if self.preset == "default" else CHUNK
        totals = [sum(found) for found in zip(_EARLIER, _LATER, strict=True)]
        return sum(1 + (total - first) // CHUNK for total in totals)

    def _view(self, name: str, dimension: int) -> str:
        lines = [f'[[views]]\nname = "{name}"\ndimension = {dimension}']
        if self.encoding == "packed64":
            lines.append('dtype = "float64"')
        if self.transform is not None:
            lines.append(f'transform = "{self.transform}"')
        if self.named:
            labels = ", ".join(f'"{name} № {number}"' for number in range(dimension))
            lines.append(f"names = [{labels}]")
        return "\n".join(lines) + "\n"

    def inputs(self, seed: int = 0, *, framed: bool = False) -> list[list[Input]]:
        """The messages of every partition."""
        return [
            messages(
                self.encoding,
                10 * seed + number,
                _EARLIER[number] + _LATER[number],
                framed=framed,
                jumps=self.jumps,
            )
            for number in range(PARTITIONS)
        ]

    def job(self, seed: int = 0, crash: tuple[str, int] | None = None) -> Job:
        """Two halves of the stream, each followed by a process that merges.

        A process that merges finds no new records, so what it merges does not depend on the time.
        With a `crash`, a process dies at the n-th occurrence of that step (from 0) in each half;
        at a step of a merge only in the first one.
        """
        inputs = self.inputs(seed)
        parts = [
            round(len(found) * _EARLIER[n] / (_EARLIER[n] + _LATER[n]))
            for n, found in enumerate(inputs)
        ]
        merging = crash is not None and crash[0].startswith("merge")
        crashes = [] if crash is None else [process(merge=merging, crash=list(crash))]
        return {
            "config": self.config,
            "start": None,
            "steps": [
                *(_produce(n, found[: parts[n]]) for n, found in enumerate(inputs)),
                *(() if merging else crashes),
                *(process(), *(crashes if merging else ()), process(merge=True)),
                *(_produce(n, found[parts[n] :]) for n, found in enumerate(inputs)),
                *(() if merging else crashes),
                *(process(end="kill"), process(), process(merge=True)),
            ],
        }


def _produce(partition: int, found: Sequence[Input]) -> Step:
    return ["produce", partition, [list(message) for message in found]]


def process(*, merge: bool = False, crash: Step | None = None, end: str = "shut down") -> Step:
    return ["process", {"merge": merge, "crash": crash, "end": end}]


CASES: Final[Sequence[Case]] = (
    Case("default", "packed32"),
    Case(
        "default-named",
        "json",
        named=True,
        linger=10.0,
        output='format = "msgpack"\ntop = 0.5',
        selector="sketch = 8\nlam = 2.0\ntolerance = 0.003",
        letters="max_open_bytes = 5000",
    ),
    Case(
        "default-decay",
        "packed64",
        selector='sketch = 8\ndecay = 0.9\nbudget = "proportional"',
        cut="max_span = 4",
        jumps=True,
        output="top = 3",
        tolerance=1e-8,
        letters='policy = "skip"',
    ),
    Case("default-lists", "lists", transform="none", linger=10.0, selector="sketch = 0"),
    Case(
        "default-sparse",
        "sparse",
        transform="unit",
        linger=10.0,
        selector="sketch = 4\nmax_iterations = 25",
        kafka="largest_message = 8000",
    ),
    Case("paper", "packed64", preset="paper", selector="max_iterations = 20", tolerance=1e-3),
    Case("paper-sparse", "sparse", preset="paper", selector="", linger=10.0, output="top = 10"),
    Case("classical", "json", preset="classical", selector=""),
    Case("classical-float32", "packed32", preset="classical", selector="", linger=10.0),
    Case("classical-sparse", "sparse json", preset="classical", selector="", output="top = 10"),
)


def with_linger(case: Case, seconds: float) -> Case:
    """The same with another time to linger."""
    return replace(case, linger=seconds)


STEPS: Final = ("updated", "begun", "snapshot sent", "records sent", "committed", "advised")
"""Of a commit."""
MERGE_STEPS: Final = ("merge begun", "merge sent", "merge committed")
