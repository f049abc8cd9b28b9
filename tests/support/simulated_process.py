"""A stream in memory, and processes that work on it and crash as the test says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stream_fs.pipeline.administration import reset_to_offset
from stream_fs.pipeline.events import Event
from stream_fs.pipeline.ports import Partition, Transport
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.pipeline.transaction import Executor, Runtime, run_inline
from stream_fs.pipeline.worker import Worker
from stream_fs.selector import View, params
from stream_fs.wire.declared import DeclaredView
from stream_fs.wire.records.encoder import encode_record
from tests.support.memory_broker import MemoryBroker
from tests.support.memory_transport import MemoryTransport
from tests.support.settings import dead_letter_settings, stream_settings

STEPS = ["updated", "begun", "snapshot sent", "records sent", "committed", "advised"]
"""The steps of a commit at which the crash hook is called."""
TOPIC, STATE, RANKINGS, LETTERS = "in", "in.state", "out", "dead"
DIMENSIONS = {"a": 6, "b": 4}
CLUSTERS = 2


class Crash(BaseException):
    """The process is killed: nothing catches this on the way out."""


def settings(**changes: Any) -> StreamSettings:
    selector = params(
        [View(name, dimension) for name, dimension in DIMENSIONS.items()],
        CLUSTERS,
        first_rows=10,
        max_iterations=10,
    )
    values: dict[str, Any] = {
        "stream": "s",
        "group": "g",
        "params": selector,
        "views": tuple(DeclaredView(name, dim) for name, dim in DIMENSIONS.items()),
        "rankings_topic": RANKINGS,
        "dead_letter_topic": LETTERS,
        "state_topics": {TOPIC: STATE},
        "chunk_records": 15,
        "checkpoint_every": 3,
        "linger": 0.0,
        "dead_letters": dead_letter_settings(),
    }
    return stream_settings(**{**values, **changes})


def broker(partitions: int = 1) -> MemoryBroker:
    made = MemoryBroker()
    for topic in (TOPIC, STATE):
        made.create(topic, partitions)
    made.create(RANKINGS, 1)
    made.create(LETTERS, 1)
    return made


def records(count: int, seed: int = 0, bad_every: int = 0) -> Iterator[bytes]:
    """Records of two clusters, some without a view; a bad one before every `bad_every`-th."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        if bad_every and number % bad_every == bad_every - 1:
            yield b"not a record"
        group = int(rng.integers(CLUSTERS))
        views = {
            name: (rng.random(dimension) + group * (np.arange(dimension) % 2)).astype(np.float32)
            for name, dimension in DIMENSIONS.items()
        }
        missing = rng.random()
        if missing < 0.3:
            del views["a"]
        elif missing < 0.6:
            del views["b"]
        yield encode_record(views)


def fill(made: MemoryBroker, values: Sequence[bytes], partition: int = 0) -> None:
    for number, value in enumerate(values):
        made.produce(TOPIC, value, partition=partition, timestamp=1000 + number)


VALUES = list(records(150, bad_every=11))
"""Enough for nine chunks, with some bad records."""


@dataclass
class SimulatedProcess:
    """One process; `crash` names a step of a commit and how many times it is passed before."""

    broker: MemoryBroker
    settings: StreamSettings
    crash: tuple[str, int] | None = None
    executor: Executor = run_inline
    events: list[Event] = field(default_factory=list)
    now: float = 0.0
    transport: Callable[[MemoryTransport], Transport] = lambda transport: transport
    grace: float = 5.0

    def __post_init__(self) -> None:
        self.steps: Counter[str] = Counter()
        """How many times each step of a commit was reached."""
        runtime = Runtime(self._clock, self.events.append, self._step, self.executor, self._sleep)
        owner, states = self.settings.owner, self.settings.state_topics
        transport = self.transport(MemoryTransport(self.broker, owner.group, states, owner.stream))
        self.worker = Worker(
            [TOPIC], self.settings, transport, runtime, jitter=lambda: 0.1, grace=self.grace
        )

    def _clock(self) -> float:
        self.now += 0.001
        return self.now

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def _step(self, step: str) -> None:
        self.steps[step] += 1
        if self.crash is not None and step == self.crash[0] and self.steps[step] > self.crash[1]:
            raise Crash(step)

    def until(self, done: Callable[[], bool], turns: int = 3000) -> None:
        for _ in range(turns):
            if done():
                return
            self.worker.run_once()
        raise AssertionError(f"not done after {turns} turns; events: {self.events[-5:]}")

    def run(self, turns: int = 300) -> bool:
        """Run for so many turns; whether the process is still alive."""
        try:
            for _ in range(turns):
                self.worker.run_once()
        except Crash:
            self.kill()
            return False
        return True

    def kill(self) -> None:
        """End the process at once: nothing is committed or released."""
        self.worker._input.crash()  # type: ignore[attr-defined]  # only the one in memory can

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def start(made: MemoryBroker, here: StreamSettings) -> None:
    """Record the start of the first partition, which would come with the first chunk."""
    transport = MemoryTransport(made, here.group, here.state_topics, here.stream)
    reset_to_offset(transport, here, Partition(TOPIC, 0), 0, keep_model=False)


def published(made: MemoryBroker, topic: str = RANKINGS) -> list[tuple[Any, ...]]:
    """The records that a subscriber receives, without offsets, which aborted records shift."""
    return [(m.key, m.value, m.headers) for m in made.committed(topic)]


@contextmanager
def undisturbed(values: Sequence[bytes], **changes: Any) -> Iterator[MemoryBroker]:
    """A broker on which one process has processed these values without a failure."""
    made = broker()
    fill(made, values)
    assert SimulatedProcess(made, settings(**changes)).run()
    yield made
