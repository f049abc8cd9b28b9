"""One broker for all processes of a test run.

(The groups of pytest-xdist would put all tests that need a broker on one worker, but they have no
effect with pytest 9.2, and would leave the other workers idle.)
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from stream_fs.broker import Broker
from stream_fs.broker.session import ExternalBroker


class SharedBroker(ExternalBroker):
    """The broker of all processes of this test run: none of them may stop it."""

    def __init__(self, bootstrap: str, log_dir: Path) -> None:
        super().__init__(bootstrap, "this test run")
        self._log_dir = log_dir

    def log_tail(self, lines: int = 40) -> str:
        logs = sorted(self._log_dir.glob("*.log"))
        return "\n".join("\n".join(log.read_text().splitlines()[-lines:]) for log in logs)


@contextmanager
def shared_broker(
    directory: Path, start: Callable[[], AbstractContextManager[Broker]]
) -> Iterator[Broker]:
    """The broker of all processes that name this directory.

    The first one starts it, and stops it when no other uses it any more. One that arrives while it
    is being stopped waits, and then starts another.
    """
    directory.mkdir(parents=True, exist_ok=True)
    address = directory / "address"
    with (directory / "turn").open("w") as turn, (directory / "users").open("w") as users:
        fcntl.flock(turn, fcntl.LOCK_EX)
        fcntl.flock(users, fcntl.LOCK_SH)
        if address.exists():
            fcntl.flock(turn, fcntl.LOCK_UN)
            yield SharedBroker(address.read_text(), directory)
            return
        with start() as broker:
            address.write_text(broker.bootstrap)
            fcntl.flock(turn, fcntl.LOCK_UN)
            try:
                yield SharedBroker(broker.bootstrap, directory)
            finally:
                fcntl.flock(users, fcntl.LOCK_UN)
                fcntl.flock(turn, fcntl.LOCK_EX)
                fcntl.flock(users, fcntl.LOCK_EX)
                address.unlink()
