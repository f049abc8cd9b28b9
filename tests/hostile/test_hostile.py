"""The short form of the campaign's part, and that the fuzzer would find what there is to find."""

from __future__ import annotations

from pathlib import Path

import pytest

from stream_fs.errors import StreamFsError
from tests.hostile.every import every_target
from tests.hostile.target import Target
from tests.hostile.worker import FREE_BYTES, Attempts

INPUTS = 40


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Target]:
    return every_target(tmp_path_factory.mktemp("hostile"))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_decoder_is_surprised(targets: dict[str, Target]) -> None:
    faults: list[str] = []
    for target in targets.values():
        attempts = Attempts(target, seed=1)
        for number in range(INPUTS):
            attempts.attempt(number)
        faults += attempts.found.faults
    assert faults == []


def test_what_is_good_is_taken(targets: dict[str, Target]) -> None:
    """Or the rest would show little: everything could be refused for one reason."""
    refusing = {"headers", "state log"}
    for name, target in targets.items():
        taken = 0
        for seed in target.seeds:
            try:
                target.attempt(seed)
                taken += 1
            except StreamFsError:
                continue
        assert taken or name in refusing, name


def test_an_input_follows_from_its_number(targets: dict[str, Target], tmp_path: Path) -> None:
    again = every_target(tmp_path)
    for name in ("records in msgpack", "rankings in json", "progress", "configuration file"):
        inputs = [targets[name].input(5, number) for number in range(20)]
        assert inputs == [again[name].input(5, number) for number in range(20)]
        assert len(set(inputs)) > 15


def test_a_fault_is_told_with_its_bytes() -> None:
    def attempt(data: bytes) -> None:
        if data != b"good":
            raise KeyError(len(data))

    attempts = Attempts(Target(name="planted", attempt=attempt, seeds=[b"good"]), seed=0)
    for number in range(20):
        attempts.attempt(number)
    assert attempts.found.faults
    for fault in attempts.found.faults:
        assert fault.startswith("planted, input ")
        assert "KeyError" in fault


def test_memory_out_of_proportion_is_told() -> None:
    target = Target(name="planted", attempt=lambda _: bytes(2 * FREE_BYTES), seeds=[b"good"])
    attempts = Attempts(target, seed=0)
    attempts.attempt(0)
    (fault,) = attempts.found.faults
    assert "memory" in fault


def test_a_fault_of_many_together_is_found_among_them() -> None:
    def together(_: object) -> None:
        raise IndexError

    def attempt(data: bytes) -> None:
        if len(data) > 4:
            raise IndexError

    seeds = [b"good"]
    target = Target(name="planted", attempt=attempt, together=together, seeds=seeds)
    attempts = Attempts(target, seed=0)
    attempts.attempt_all(range(32))
    assert attempts.found.faults
    assert attempts.found.inputs == 32
