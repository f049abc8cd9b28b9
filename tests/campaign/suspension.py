"""Processes stopped for longer than a session, and two processes for one partition."""

from __future__ import annotations

import signal

from stream_fs.service.exit_codes import ExitCode
from tests.support.processes import wait_until
from tests.support.recovery.faulty_service import FaultPoint
from tests.support.recovery.service_process import ServiceProcess
from tests.support.recovery.stream_run import StreamRun

SESSION_SECONDS, TRANSACTION_SECONDS = 6, 6
"""Time until the group expels a member, and until the broker aborts an open transaction.

Longer than a running member needs on a busy machine.
"""
DYNAMIC_MEMBER = (
    f'"session.timeout.ms" = {SESSION_SECONDS * 1000}, "heartbeat.interval.ms" = 300, '
    f'"max.poll.interval.ms" = {SESSION_SECONDS * 1000}'
)
"""Members without group.instance.id, whose loss is noticed soon."""
STATIC_MEMBER = f'{DYNAMIC_MEMBER}, "group.instance.id" = "member"'
SETTINGS = (f"kafka.transaction_timeout={TRANSACTION_SECONDS}",)
CHUNKS = 5
"""Chunks published between two actions, as long as there are any."""
SLOW_UPDATES = ("--slow", "0.2")
"""Arguments that leave work for both of two processes."""
FENCED = "taken over by another owner"


def stop_past_session(stream_run: StreamRun, step: str) -> str:
    """Stop a process past its session, and continue it; no other one owns its partition.

    It must acquire the partition again by itself.
    """
    process = _stopped_past_session(stream_run, step)
    process.signal(signal.SIGCONT)
    _publish_more(stream_run, process)
    fenced = len(process.log(FENCED))
    process.stop()
    return f"fenced {fenced}"


def replace_stopped_past_session(stream_run: StreamRun, step: str) -> str:
    """Stop a process until another one owns its partition, then continue it."""
    stopped_process = _stopped_past_session(stream_run, step)
    successor = stream_run.start(more=SLOW_UPDATES)
    _publish_more(stream_run, successor)
    stopped_process.signal(signal.SIGCONT)
    stopped_process.until(
        lambda: (
            stopped_process.log_contains(FENCED)
            or stopped_process.log_contains("partition released")
        ),
        "its fencing or revocation",
    )
    _publish_more(stream_run, successor)
    wait_until(lambda: stream_run.members == 2, "both are in the group")
    stopped_process.stop()
    successor.stop()
    return f"{'fenced' if stopped_process.log_contains(FENCED) else 'revoked by the group'}"


def _publish_more(stream_run: StreamRun, process: ServiceProcess) -> None:
    """Wait until a process has published a few more rankings, if there are any."""
    stream_run.reach(process, min(stream_run.published() + CHUNKS, stream_run.content.chunks))


def _stopped_past_session(stream_run: StreamRun, step: str) -> ServiceProcess:
    """Stop a process at a step of its third chunk until its transaction is aborted."""
    process = stream_run.start(FaultPoint(step, 3), "STOP")
    process.until(lambda: process.stopped, "its stop")
    wait_until(lambda: stream_run.members == 0, "the group has expelled it")
    stream_run.rankings.everything()  # waits until no transaction is open
    return process


def start_same_member_twice(stream_run: StreamRun) -> str:
    """Start two processes with the same group.instance.id: the first one ends, with the reason.

    This happens when a supervisor starts a replacement before the old process has ended.
    """
    first = stream_run.start(more=SLOW_UPDATES)
    _publish_more(stream_run, first)
    second = stream_run.start(more=SLOW_UPDATES)
    found = first.wait()
    assert found == ExitCode.BROKER, first.failure(f"ended with {found}")
    assert first.log_contains("group.instance.id"), first.failure("ended without a reason")
    _publish_more(stream_run, second)
    second.until_running()
    second.stop()
    return f"the first ends with {found}"


def kill_one_of_two(stream_run: StreamRun) -> str:
    """Start two dynamic members for one partition, and kill its owner: the other one continues."""
    first = stream_run.start(more=SLOW_UPDATES)
    _publish_more(stream_run, first)
    second = stream_run.start(more=SLOW_UPDATES)
    wait_until(lambda: stream_run.members == 2, "both are in the group")
    _publish_more(stream_run, first)
    owner, successor = (
        (first, second) if not first.log_contains("partition released") else (second, first)
    )
    owner.kill()
    successor.until_running()
    _publish_more(stream_run, successor)
    assert not successor.log_contains(FENCED), successor.failure("was fenced")
    successor.stop()
    return "the other one continues"
