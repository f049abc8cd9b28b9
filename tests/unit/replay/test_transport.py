"""The file adapter keeps the contract of the ports, for one partition and one process.

Left out is what files do not have: further partitions and groups, foreign transactions, retention,
repeated headers, and input that grows while it is read.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from stream_fs.pipeline.ports import Partition
from stream_fs.replay.input import RecordSequence
from stream_fs.replay.journal import Journal
from stream_fs.replay.outputs import FileOutput, dead_letter_line
from stream_fs.replay.sources import Source
from stream_fs.replay.transport import FileTransport
from stream_fs.wire import DeclaredView
from tests.contracts.backend import Published
from tests.contracts.input import InputContract
from tests.contracts.publisher import PublisherContract
from tests.contracts.state_log import StateLogContract

TOPIC = "topic"
VIEWS = (DeclaredView("a", 1),)


class FileBackend:
    """Files as a `Backend`; published records are written as dead letters."""

    def __init__(self, folder: Path) -> None:
        self._input = folder / "input.jsonl"
        self._output = folder / "output.jsonl"
        self._count = 0
        self._input.touch()
        output = FileOutput(self._output, dead_letter_line)
        output.begin(0, "")
        self._outputs = {TOPIC: output}
        self._journal = Journal(folder / "journal")
        self._made: FileTransport | None = None

    def topic(self, partitions: int = 1) -> str:
        assert partitions == 1
        return TOPIC

    def state_topic(self, topic: str) -> str:
        return f"{topic}.state"

    def transport(self, group: str = "group") -> FileTransport:
        assert group == "group"
        if self._made is None:
            records = RecordSequence([Source(str(self._input), "jsonl", VIEWS, "json")])
            self._made = FileTransport(
                Partition(TOPIC, 0), f"{TOPIC}.state", self._journal, self._outputs, records
            )
        return self._made

    def produce(
        self,
        partition: Partition,
        value: bytes | None,
        key: bytes | None = None,
        headers: tuple[tuple[str, bytes | None], ...] = (),
    ) -> int:
        assert (partition, key, headers) == (Partition(TOPIC, 0), None, ())
        with self._input.open("ab") as file:
            file.write((value or b"") + b"\n")
        self._count += 1
        return self._count - 1

    def delete_below(self, partition: Partition, offset: int) -> None:
        raise NotImplementedError(f"files keep {partition} below {offset}")

    def published(self, topic: str, partition: int = 0) -> list[Published]:
        assert (topic, partition) == (TOPIC, 0)
        lines = map(json.loads, self._output.read_text().splitlines())
        return [Published(_bytes(line["key"]), _bytes(line["value"])) for line in lines]

    def close(self) -> None:
        self._journal.close()
        for output in self._outputs.values():
            output.close()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


@pytest.fixture
def backend(tmp_path: Path) -> FileBackend:
    return FileBackend(tmp_path)


@pytest.fixture(autouse=True)
def _closed(backend: FileBackend) -> object:
    yield
    backend.close()


class TestFilePublisher:
    _ = PublisherContract
    test_committed_records_are_published_together_and_not_before = (
        _.test_committed_records_are_published_together_and_not_before
    )
    test_an_empty_transaction = _.test_an_empty_transaction
    test_aborted_records_are_not_published = _.test_aborted_records_are_not_published
    test_a_new_owner_aborts_the_open_transaction_of_the_old_one = (
        _.test_a_new_owner_aborts_the_open_transaction_of_the_old_one
    )
    test_the_old_owner_is_fenced = _.test_the_old_owner_is_fenced
    test_a_fenced_publisher_can_acquire_again = _.test_a_fenced_publisher_can_acquire_again
    test_an_owner_can_acquire_again = _.test_an_owner_can_acquire_again
    test_a_fenced_publisher_can_be_aborted_and_closed = (
        _.test_a_fenced_publisher_can_be_aborted_and_closed
    )
    test_a_legacy_publisher_is_another_owner = _.test_a_legacy_publisher_is_another_owner
    test_closing_aborts_an_open_transaction = _.test_closing_aborts_an_open_transaction
    test_a_publisher_that_was_not_acquired_can_be_closed = (
        _.test_a_publisher_that_was_not_acquired_can_be_closed
    )


class TestJournalLog:
    _ = StateLogContract
    test_an_empty_log = _.test_an_empty_log
    test_committed_records_in_their_order = _.test_committed_records_in_their_order
    test_a_tombstone = _.test_a_tombstone
    test_a_part_of_the_log = _.test_a_part_of_the_log
    test_it_can_be_scanned_again_and_again = _.test_it_can_be_scanned_again_and_again
    test_a_scan_may_be_abandoned = _.test_a_scan_may_be_abandoned
    test_later_records_are_found_by_a_later_scan = _.test_later_records_are_found_by_a_later_scan
    test_a_log_of_aborted_records_only = _.test_a_log_of_aborted_records_only
    test_the_end_is_behind_open_transactions = _.test_the_end_is_behind_open_transactions
    test_a_log_that_was_not_scanned_can_be_closed = _.test_a_log_that_was_not_scanned_can_be_closed


class TestFileInput:
    _ = InputContract
    test_resuming_again_goes_to_the_new_offset = _.test_resuming_again_goes_to_the_new_offset
    test_a_paused_partition_is_silent_until_it_is_resumed = (
        _.test_a_paused_partition_is_silent_until_it_is_resumed
    )
    test_nothing_is_unread_when_everything_was_delivered = (
        _.test_nothing_is_unread_when_everything_was_delivered
    )
    test_poll_raises_what_the_assignment_raises = _.test_poll_raises_what_the_assignment_raises
    test_close_raises_what_the_assignment_raises = _.test_close_raises_what_the_assignment_raises
