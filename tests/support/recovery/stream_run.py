"""One run through the input, by processes that may be killed.

Runs share the input topic and the name of the stream, which are in what is published, and have
a consumer group, a state and outputs of their own, which are not. So their output can be compared
byte by byte.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from confluent_kafka.admin import AdminClient

from stream_fs.kafka import Topics
from stream_fs.service.configuration import load
from stream_fs.service.topics import topic_problems, topic_specs
from tests.support.processes import wait_until
from tests.support.recovery.comparison import Published
from tests.support.recovery.content import CHUNK, CLUSTERS, DIMENSIONS, SNAPSHOT_EVERY, Content
from tests.support.recovery.faulty_service import FaultPoint
from tests.support.recovery.launchers import Launcher
from tests.support.recovery.process_faults import FaultKind
from tests.support.recovery.service_process import TIMEOUT_SECONDS, ServiceProcess
from tests.support.recovery.subscriber import Subscriber

_CONFIGURATION = """\
[stream]
name = "recovery"
topics = ["{topic}"]
{views}
[selector]
clusters = {clusters}
[chunk]
records = {chunk}
[checkpoint]
every_chunks = {every}
[merge]
enabled = {merge}
every_seconds = 1
[output]
topic = "{topic}.{name}.rankings"
[dead_letters]
topic = "{topic}.{name}.letters"
[state]
topic = "{{topic}}.{name}.state"
[kafka]
bootstrap = "{bootstrap}"
group = "{topic}.{name}"
protocol = "{protocol}"
{limits}
properties = {{ {properties} }}
[service]
port = 0
[log]
format = "json"
"""
SAME_MEMBER = '"group.instance.id" = "member"'
"""A static member: it gets its partitions back at once, not after the session timeout."""


@dataclass(frozen=True)
class RunSettings:
    """Settings of the processes of a run that differ from the usual ones.

    Merged rankings are off by default, as only those of partitions are counted and compared.
    `bootstrap` is the address that processes connect to, if not the one that the test uses.
    """

    protocol: Literal["eager", "cooperative", "consumer"] = "cooperative"
    merge: bool = False
    bootstrap: str | None = None
    limits: str = ""
    """Lines of the section `kafka`."""


DEFAULTS = RunSettings()


def configure(
    folder: Path,
    bootstrap: str,
    topic: str,
    name: str,
    properties: str,
    run_settings: RunSettings = DEFAULTS,
    dimensions: Mapping[str, int] = DIMENSIONS,
) -> Path:
    """Write a configuration that reads a topic as a group with a state and outputs of its own."""
    path = folder / f"{topic}.{name}.toml"
    views = "".join(f'[[views]]\nname = "{n}"\ndimension = {d}\n' for n, d in dimensions.items())
    text = _CONFIGURATION.format(
        topic=topic,
        name=name,
        bootstrap=run_settings.bootstrap or bootstrap,
        merge=str(run_settings.merge).lower(),
        protocol=run_settings.protocol,
        limits=run_settings.limits,
        views=views,
        clusters=CLUSTERS,
        chunk=CHUNK,
        every=SNAPSHOT_EVERY,
        properties=properties,
    )
    path.write_text(text, encoding="utf-8")
    return path


def make_topics(config: Path, settings: Sequence[str] = ()) -> list[str]:
    """Make the topics of a stream except its input, which exists; the names of the new ones.

    As `stream-fs topics create` does it, which gives the state as many partitions as the input has.
    """
    configuration = load(config, {}, settings)
    topics = Topics(configuration.kafka_settings())
    plans = topic_specs(configuration, topics)
    topics.grow(plans)
    made = topics.create(plans)
    # A busy broker answers before all of its metadata has the new topics.
    wait_until(lambda: not topic_problems(configuration, topics), "the topics are there")
    return made


def delete_topics(bootstrap: str, names: Sequence[str]) -> None:
    """Delete topics on a broker that other tests use."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for deleted in admin.delete_topics(list(names)).values() if names else ():
        deleted.result(TIMEOUT_SECONDS)


class StreamRun:
    """A context manager that kills its processes and deletes its topics.

    `make` makes the topics of a configuration except its input, and returns their names.
    """

    def __init__(
        self,
        bootstrap: str,
        content: Content,
        folder: Path,
        name: str,
        start: Launcher,
        properties: str = SAME_MEMBER,
        run_settings: RunSettings = DEFAULTS,
        make: Callable[[Path], list[str]] | None = None,
        *,
        settings: Sequence[str] = (),
        dimensions: Mapping[str, int] = DIMENSIONS,
    ) -> None:
        """`settings`, each `section.key=value`, override the configuration of every process."""
        self.content = content
        self._start = start
        self.processes: list[ServiceProcess] = []
        self._folder = folder
        self._name = name
        self._bootstrap = bootstrap
        self.config = configure(
            folder, bootstrap, content.topic, name, properties, run_settings, dimensions
        )
        self._settings = settings
        self._topics = make_topics(self.config, settings) if make is None else make(self.config)
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self.rankings = self.subscriber("rankings")
        self.letters = self.subscriber("letters")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self.processes:
            process.kill()
        self.rankings.close()
        self.letters.close()
        delete_topics(self._bootstrap, self._topics)

    def subscriber(
        self,
        output: Literal["rankings", "letters"],
        isolation: Literal["read_committed", "read_uncommitted"] = "read_committed",
    ) -> Subscriber:
        """A new subscriber to one of the outputs."""
        return Subscriber(self._bootstrap, self.topic(output), isolation)

    def topic(self, what: Literal["input", "state", "rankings", "letters"]) -> str:
        """The name of one of the stream's topics."""
        topic = self.content.topic
        return topic if what == "input" else f"{topic}.{self._name}.{what}"

    def start(
        self,
        fault_point: FaultPoint | None = None,
        fault: FaultKind = "KILL",
        more: Sequence[str] = (),
    ) -> ServiceProcess:
        """Start another process, with a fault at a step of it.

        `more` are further arguments of `faulty_service`.
        """
        log = self._folder / f"{self._name}-{len(self.processes)}.log"
        flags = [argument for setting in self._settings for argument in ("--set", setting)]
        process = ServiceProcess(self._start, self.config, log, fault_point, fault, [*flags, *more])
        self.processes.append(process)
        return process

    @property
    def group(self) -> str:
        """The consumer group of its processes."""
        return f"{self.content.topic}.{self._name}"

    @property
    def members(self) -> int:
        """The number of members of the consumer group."""
        (described,) = self._admin.describe_consumer_groups([self.group]).values()
        return len(described.result(TIMEOUT_SECONDS).members)

    def published(self) -> int:
        """The number of rankings that a subscriber has received so far."""
        return self.rankings.listen(0)

    def reach(self, process: ServiceProcess, count: int) -> None:
        """Wait until so many rankings are published."""
        process.until(self._has(count), f"ranking {count}")

    def expect_published(self, count: int) -> None:
        """Check that exactly so many rankings are published after the end of a process."""
        wait_until(self._has(count), f"ranking {count}")
        found = len(self.rankings.decided())
        assert found == count, f"{found} rankings are published, not {count}"

    def complete(self) -> Published:
        """Run one more process to the end of the input; everything the run has published."""
        return self.finish(self.start())

    def finish(self, process: ServiceProcess) -> Published:
        """Run this process to the end of the input; everything the run has published."""
        process.until_running()
        self.reach(process, self.content.chunks)
        process.stop()
        return Published(self.rankings.everything(), self.letters.everything())

    def _has(self, count: int) -> Callable[[], bool]:
        return lambda: self.rankings.listen(0.01) >= count
