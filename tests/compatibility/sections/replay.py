"""Files of `stream-fs replay`: alone, after a kill, and from the other side's checkpoint."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.compatibility.cases import Case, with_linger
from tests.compatibility.formats import journal, plain_replay
from tests.compatibility.releases import Runner
from tests.compatibility.replays import Folder, Recorded, replayed_cases, stages
from tests.compatibility.sections import Finding, Options, finding

_PATIENCE_SECONDS = 60.0
_ATTEMPTS = 5


def compare(old: Runner, new: Runner, options: Options) -> Iterator[Finding]:
    """Every case that is replayed, with and without linger."""
    for case in replayed_cases():
        for linger in (0.0, 10.0) if options.cases in case.name else ():
            yield _case(with_linger(case, linger), old, new, options.seed)


def _case(case: Case, old: Runner, new: Runner, seed: int) -> Finding:
    contents = stages(case, seed)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor() as threads:

        def fresh(name: str) -> Folder:
            return Folder(Path(scratch) / name, case.name, case.config)

        def whole(side: Runner) -> Recorded:
            return fresh(f"{side.name} alone").replay(side.command, contents)

        def handed(recorded: Recorded, source: Runner, done: int, side: Runner) -> Recorded:
            folder = fresh(f"{source.name} {done} {side.name}")
            left = folder.lay(recorded, done)
            return folder.replay(side.command, contents[-len(left) :])

        def killed(first: Runner, second: Runner) -> Recorded:
            for attempt in range(_ATTEMPTS):
                folder = fresh(f"{first.name} killed {attempt}")
                if _kill(first, folder, contents[0], transactions=2):
                    return folder.replay(second.command, contents)
            raise RuntimeError(f"{first.name} ended before it was killed, {_ATTEMPTS} times")

        before, now = threads.map(whole, (old, new))
        pairs = [("undisturbed", _plain(case, before), _plain(case, now))]
        for source, recorded in ((old, before), (new, now)):
            count = len(journal(recorded.checkpoint))
            for done in sorted({2, recorded.stages[0], count - 1}):
                sides = (threads.submit(handed, recorded, source, done, s) for s in (old, new))
                one, other = (_plain(case, side.result()) for side in sides)
                name = f"from {source.name}, transaction {done}"
                pairs += [(name, one, other), (f"{name}, in the end", *_ends(case, before, other))]
        runs = threads.map(killed, (old, new), (new, old))
        for name, recorded in zip(("old, then new", "new, then old"), runs, strict=True):
            pairs.append((f"killed {name}", *_ends(case, before, _plain(case, recorded))))
        return finding("replay", f"{case.name}, linger {case.linger:g}", pairs)


def _plain(case: Case, found: Recorded) -> dict[str, Any]:
    """All bytes, as they would be without declared additions and in present words."""
    format = "msgpack" if "msgpack" in case.output else "json"
    return plain_replay(*found[:3], format)._asdict()


def _ends(case: Case, before: Recorded, now: dict[str, Any]) -> tuple[Any, Any]:
    """What is the same however often it was interrupted: without the state in between."""
    plain = _plain(case, before)
    names = ("rankings", "letters")
    return {name: plain[name] for name in names}, {name: now[name] for name in names}


def _kill(side: Runner, folder: Folder, content: bytes, transactions: int) -> bool:
    """Kill a replay as soon as it has so many transactions; False where it ended before."""
    arguments: Sequence[str] = folder.arguments(content)
    process = side.started(arguments, folder.file("log"))
    deadline = time.monotonic() + _PATIENCE_SECONDS
    try:
        while process.poll() is None and time.monotonic() < deadline:
            checkpoint = folder.file("checkpoint")
            try:
                if len(journal(checkpoint.read_bytes())) >= transactions:
                    break
            except (FileNotFoundError, ValueError):
                pass  # it has not begun
            time.sleep(0.001)
    finally:
        process.kill()
        code = process.wait()
    return code < 0
