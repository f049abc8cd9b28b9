"""Processes that sleep longer than the group waits for them, and two in the place of one."""

from __future__ import annotations

import signal

from stream_fs.service.exit_codes import ExitCode
from tests.support.processes import wait_until
from tests.support.recovery.faulty_service import Moment
from tests.support.recovery.service_process import Life
from tests.support.recovery.stream_run import Journey

SESSION_SECONDS, TRANSACTION_SECONDS = 6, 6
"""After so long the group gives the partition away, and the broker voids an open transaction.

More than a member needs that is awake on a busy machine.
"""
NAMELESS = (
    f'"session.timeout.ms" = {SESSION_SECONDS * 1000}, "heartbeat.interval.ms" = 300, '
    f'"max.poll.interval.ms" = {SESSION_SECONDS * 1000}'
)
"""Members like those of a deployment without names, which are soon missed."""
NAMED = f'{NAMELESS}, "group.instance.id" = "member"'
SETTINGS = (f"kafka.transaction_timeout={TRANSACTION_SECONDS}",)
CHUNKS = 5
"""That are published between one thing and the next, as long as there are any."""
CALM = ("--slow", "0.2")
"""So that there is something to do for both of two."""
FENCED = "taken over by another owner"


def oversleep(journey: Journey, step: str) -> str:
    """A life stands still until nobody waits for it any more, and nobody has its place.

    It has to find its way back by itself.
    """
    life = _asleep(journey, step)
    life.signal(signal.SIGCONT)
    _go_on(journey, life)
    fenced = len(life.log(FENCED))
    life.stop()
    return f"fenced {fenced}"


def oversleep_and_be_replaced(journey: Journey, step: str) -> str:
    """A life stands still until another one has its place; then both go on, one of them works."""
    late = _asleep(journey, step)
    heir = journey.start(more=CALM)
    _go_on(journey, heir)
    late.signal(signal.SIGCONT)
    late.until(lambda: late.said(FENCED) or late.said("partition released"), "hearing of it")
    _go_on(journey, heir)
    wait_until(lambda: journey.members == 2, "both are in the group")
    late.stop()
    heir.stop()
    return f"{'fenced' if late.said(FENCED) else 'told by the group'}"


def _go_on(journey: Journey, life: Life) -> None:
    """Wait for a few more rankings, if there are any."""
    journey.reach(life, min(journey.published() + CHUNKS, journey.content.chunks))


def _asleep(journey: Journey, step: str) -> Life:
    """One that stands still at a step of its third chunk; no transaction is open any more."""
    life = journey.start(Moment(step, 3), "STOP")
    life.until(lambda: life.standing, "standing still")
    wait_until(lambda: journey.members == 0, "the group has given it up")
    journey.rankings.everything()  # waits until the broker has voided what was open
    return life


def twins(journey: Journey) -> str:
    """Another process comes with the same name in the group: the first one has to go, and says why.

    So it does where a supervisor starts a replacement before the old process is gone.
    """
    first = journey.start(more=CALM)
    _go_on(journey, first)
    second = journey.start(more=CALM)
    found = first.ends()
    assert found == ExitCode.BROKER, first.wrong(f"should not have ended with {found}")
    assert first.said("group.instance.id"), first.wrong("does not say why it ended")
    _go_on(journey, second)
    second.until_running()
    second.stop()
    return f"the first ends with {found}"


def spare(journey: Journey) -> str:
    """Two without names share a partition: one waits, and goes on when the other is killed."""
    first = journey.start(more=CALM)
    _go_on(journey, first)
    second = journey.start(more=CALM)
    wait_until(lambda: journey.members == 2, "both are in the group")
    _go_on(journey, first)
    owner, heir = (first, second) if not first.said("partition released") else (second, first)
    owner.kill()
    heir.until_running()
    _go_on(journey, heir)
    assert not heir.said(FENCED), heir.wrong("was fenced without need")
    heir.stop()
    return "the spare goes on"
