"""One passage through the input, by processes that may be killed on the way.

Journeys share the input topic and the name of the stream, which are in what is published, and have
a consumer group, a state and outputs of their own, which are not. So what they publish can be
compared to the byte.
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
from tests.support.recovery.faulty_service import Moment
from tests.support.recovery.launchers import Start
from tests.support.recovery.process_faults import Happening
from tests.support.recovery.service_process import PATIENCE_SECONDS, Life
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
"""A member that comes back gets its partitions at once, and not when its last life has expired."""


@dataclass(frozen=True)
class Manner:
    """How the processes of a journey run, where it is not as usual.

    Merged rankings are left out by default, for those that are counted and compared are of
    partitions. `bootstrap` is where processes find the broker, if not where the proof does.
    """

    protocol: Literal["eager", "cooperative", "consumer"] = "cooperative"
    merge: bool = False
    bootstrap: str | None = None
    limits: str = ""
    """Lines of the section `kafka`."""


USUAL = Manner()


def configure(
    folder: Path,
    bootstrap: str,
    topic: str,
    name: str,
    properties: str,
    manner: Manner = USUAL,
    dimensions: Mapping[str, int] = DIMENSIONS,
) -> Path:
    """Write a configuration that reads a topic as a group with a state and outputs of its own."""
    path = folder / f"{topic}.{name}.toml"
    views = "".join(f'[[views]]\nname = "{n}"\ndimension = {d}\n' for n, d in dimensions.items())
    text = _CONFIGURATION.format(
        topic=topic,
        name=name,
        bootstrap=manner.bootstrap or bootstrap,
        merge=str(manner.merge).lower(),
        protocol=manner.protocol,
        limits=manner.limits,
        views=views,
        clusters=CLUSTERS,
        chunk=CHUNK,
        every=SNAPSHOT_EVERY,
        properties=properties,
    )
    path.write_text(text, encoding="utf-8")
    return path


def make_topics(config: Path, settings: Sequence[str] = ()) -> list[str]:
    """Make the topics of a stream but for its input, which exists; which were made.

    As `stream-fs topics create` does it, which gives the state as many partitions as the input has.
    """
    configuration = load(config, {}, settings)
    topics = Topics(configuration.kafka_settings())
    plans = topic_specs(configuration, topics)
    topics.grow(plans)
    made = topics.create(plans)
    # A busy broker has agreed to make them before it tells everybody of them.
    wait_until(lambda: not topic_problems(configuration, topics), "the topics are there")
    return made


def delete_topics(bootstrap: str, names: Sequence[str]) -> None:
    """Leave a broker that is not ours as it was."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for deleted in admin.delete_topics(list(names)).values() if names else ():
        deleted.result(PATIENCE_SECONDS)


class Journey:
    """Ends what it has started when it is left.

    `make` makes the topics of a configuration but for its input, and tells which it made.
    """

    def __init__(
        self,
        bootstrap: str,
        content: Content,
        folder: Path,
        name: str,
        start: Start,
        properties: str = SAME_MEMBER,
        manner: Manner = USUAL,
        make: Callable[[Path], list[str]] | None = None,
        *,
        settings: Sequence[str] = (),
        dimensions: Mapping[str, int] = DIMENSIONS,
    ) -> None:
        """`settings` are laid over the configuration of every life, each as `section.key=value`."""
        self.content = content
        self._start = start
        self.lives: list[Life] = []
        self._folder = folder
        self._name = name
        self._bootstrap = bootstrap
        self.config = configure(
            folder, bootstrap, content.topic, name, properties, manner, dimensions
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
        for life in self.lives:
            life.kill()
        self.rankings.close()
        self.letters.close()
        delete_topics(self._bootstrap, self._topics)

    def subscriber(
        self,
        output: Literal["rankings", "letters"],
        isolation: Literal["read_committed", "read_uncommitted"] = "read_committed",
    ) -> Subscriber:
        """A new one, of one of the outputs."""
        return Subscriber(self._bootstrap, self.topic(output), isolation)

    def topic(self, what: Literal["input", "state", "rankings", "letters"]) -> str:
        """The name of one of the stream's topics."""
        topic = self.content.topic
        return topic if what == "input" else f"{topic}.{self._name}.{what}"

    def start(
        self, moment: Moment | None = None, sent: Happening = "KILL", more: Sequence[str] = ()
    ) -> Life:
        """Another process, to which something may happen in a moment of its life.

        `more` are further arguments of `faulty_service`.
        """
        log = self._folder / f"{self._name}-{len(self.lives)}.log"
        flags = [argument for setting in self._settings for argument in ("--set", setting)]
        life = Life(self._start, self.config, log, moment, sent, [*flags, *more])
        self.lives.append(life)
        return life

    @property
    def group(self) -> str:
        """The name of the group that its processes are members of."""
        return f"{self.content.topic}.{self._name}"

    @property
    def members(self) -> int:
        """Processes that the group knows of."""
        (described,) = self._admin.describe_consumer_groups([self.group]).values()
        return len(described.result(PATIENCE_SECONDS).members)

    def published(self) -> int:
        """Rankings that a subscriber has received by now."""
        return self.rankings.listen(0)

    def reach(self, life: Life, count: int) -> None:
        """Wait until so many rankings are out."""
        life.until(self._has(count), f"ranking {count}")

    def settled(self, count: int) -> None:
        """Check that so many rankings are out, and no more, after the end of a process."""
        wait_until(self._has(count), f"ranking {count}")
        found = len(self.rankings.decided())
        assert found == count, f"{found} rankings are out, where {count} should be"

    def complete(self) -> Published:
        """Go on undisturbed to the end; all that was published on the way."""
        return self.finish(self.start())

    def finish(self, life: Life) -> Published:
        """Let this process go on to the end."""
        life.until_running()
        self.reach(life, self.content.chunks)
        life.stop()
        return Published(self.rankings.everything(), self.letters.everything())

    def _has(self, count: int) -> Callable[[], bool]:
        return lambda: self.rankings.listen(0.01) >= count
