"""Topics: look at them, make them, and say in plain words what is wrong with them.

For the start of the service and for `stream-fs topics`: a broker that does not answer is an error
here, and not something to wait for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.cimpl import NewPartitions, NewTopic

from stream_fs.errors import FatalError, RetriableError
from stream_fs.kafka.certificates import judgement
from stream_fs.kafka.clients import admin_client
from stream_fs.kafka.errors import Trouble, classified, translated
from stream_fs.kafka.plans import TopicPlan, gap, missing_topic, problems
from stream_fs.kafka.settings import ClientSettings

_LATE_SECONDS: Final = 2.0


class Topics:
    """The topics on the broker."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._trouble = Trouble()
        self._admin = admin_client(settings, self._trouble)

    def partitions(self, names: Sequence[str]) -> dict[str, int]:
        """The number of partitions of each of these topics that exists."""
        found = {}
        for name in names:
            doing = f"looking for topic {name}"
            with self._asking(doing):
                topic = self._admin.list_topics(name, self._settings.patience).topics[name]
            if topic.error is None:
                found[name] = len(topic.partitions)
            elif topic.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise classified(topic.error, doing, self._trouble)
        return found

    def config(self, name: str) -> dict[str, str]:
        """The configuration of a topic, defaults included."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, name)
        with self._asking(f"reading the configuration of topic {name}"):
            (answer,) = self._admin.describe_configs(
                [resource], request_timeout=self._settings.patience
            ).values()
            entries = answer.result(self._limit)
        return {key: entry.value for key, entry in entries.items() if entry.value is not None}

    def create(self, plans: Sequence[TopicPlan]) -> list[str]:
        """Make the topics that are not there; those that are stay as they are. Which were made."""
        missing = {plan.name for plan in plans} - self.partitions([p.name for p in plans]).keys()
        wanted = [
            NewTopic(plan.name, plan.partitions, plan.replication, config=dict(plan.config))
            for plan in plans
            if plan.name in missing
        ]
        if not wanted:
            return []
        answers = self._admin.create_topics(
            wanted,
            operation_timeout=self._settings.patience,
            request_timeout=self._settings.patience,
        )
        doing, faster = "creating topic", KafkaError.TOPIC_ALREADY_EXISTS
        return [name for name, answer in answers.items() if self._done(doing, name, answer, faster)]

    def grow(self, plans: Sequence[TopicPlan]) -> list[str]:
        """Add the partitions that topics lack which follow others; which have got some."""
        existing = self.partitions([plan.name for plan in plans if plan.follows])
        wanted = [
            NewPartitions(plan.name, plan.partitions)
            for plan in plans
            if plan.name in existing and gap(plan, existing[plan.name]) is not None
        ]
        if not wanted:
            return []
        patience = self._settings.patience
        answers = self._admin.create_partitions(
            wanted, operation_timeout=patience, request_timeout=patience
        )
        doing, faster = "adding partitions to topic", KafkaError.INVALID_PARTITIONS
        return [name for name, answer in answers.items() if self._done(doing, name, answer, faster)]

    def gaps(self, plans: Sequence[TopicPlan]) -> list[str]:
        """Where partitions are lacking, a sentence each, with what to do."""
        existing = self.partitions([plan.name for plan in plans if plan.follows])
        found = [gap(plan, existing[plan.name]) for plan in plans if plan.name in existing]
        return [sentence for sentence in found if sentence is not None]

    def delete(self, names: Sequence[str]) -> None:
        """Take topics away, with all that is in them; those that are not there are passed over."""
        found = list(self.partitions(names))
        if not found:
            return
        patience = self._settings.patience
        answers = self._admin.delete_topics(
            found, operation_timeout=patience, request_timeout=patience
        )
        for name, answer in answers.items():
            with self._asking(f"deleting topic {name}"):
                answer.result(self._limit)

    def delete_group(self, group: str) -> None:
        """Take away a consumer group that has no member any more; none is passed over."""
        with self._asking(f"deleting consumer group {group}"):
            (answer,) = self._admin.delete_consumer_groups(
                [group], request_timeout=self._settings.patience
            ).values()
            try:
                answer.result(self._limit)
            except KafkaException as exception:
                if exception.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                    raise

    def check(self, plans: Sequence[TopicPlan]) -> list[str]:
        """What is wrong, a sentence each, with what to do; empty when all is well."""
        found = []
        existing = self.partitions([plan.name for plan in plans])
        for plan in plans:
            if plan.name in existing:
                found += problems(plan, existing[plan.name], self.config(plan.name))
            else:
                found.append(missing_topic(plan))
        return found

    def _done(self, doing: str, name: str, answer: Future[None], faster: int) -> bool:
        """Wait for the answer; False for `faster`, the error where another process came first."""
        with self._asking(f"{doing} {name}"):
            try:
                answer.result(self._limit)
            except KafkaException as exception:
                if exception.args[0].code() != faster:
                    raise
                return False
        return True

    @property
    def _limit(self) -> float:
        """Seconds after which the client does not keep to its own limit, and is not waited for."""
        return self._settings.patience + _LATE_SECONDS

    @contextmanager
    def _asking(self, doing: str) -> Iterator[None]:
        """Translate errors; what could pass by itself is an error all the same."""
        try:
            with translated(doing, self._trouble):
                try:
                    yield
                finally:
                    self._admin.poll(0)  # what it has to say of its connection
        except TimeoutError as reason:
            raise FatalError(
                f"{doing}: no answer from kafka.bootstrap={self._settings.bootstrap} within "
                f"{self._settings.patience:g} s"
            ) from reason
        except RetriableError as reason:
            text = f"{reason}; no answer from kafka.bootstrap={self._settings.bootstrap}"
            found = judgement(self._settings) if self._trouble.of_certificates else None
            raise FatalError(text if found is None else f"{text}; {found}") from reason
