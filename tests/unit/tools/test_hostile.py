"""A short run of the fuzzer, and planted faults that it must find."""

from __future__ import annotations

from pathlib import Path

import pytest

from stream_fs.errors import StreamFsError
from tests.hostile.registry import all_targets
from tests.hostile.target import Target
from tests.hostile.worker import ALLOWED_BYTES, Attempts

INPUTS = 40


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Target]:
    return all_targets(tmp_path_factory.mktemp("hostile"))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_decoder_has_faults(targets: dict[str, Target]) -> None:
    faults: list[str] = []
    for target in targets.values():
        attempts = Attempts(target, seed=1)
        for number in range(INPUTS):
            attempts.attempt(number)
        faults += attempts.findings.faults
    assert faults == []


def test_valid_inputs_are_accepted(targets: dict[str, Target]) -> None:
    """Otherwise every input could be rejected for the same reason."""
    rejecting = {"headers", "state log"}
    for name, target in targets.items():
        accepted = 0
        for seed in target.seeds:
            try:
                target.attempt(seed)
                accepted += 1
            except StreamFsError:
                continue
        assert accepted or name in rejecting, name


def test_an_input_depends_on_its_number_alone(targets: dict[str, Target], tmp_path: Path) -> None:
    again = all_targets(tmp_path)
    for name in ("records in msgpack", "rankings in json", "progress", "configuration file"):
        inputs = [targets[name].input(5, number) for number in range(20)]
        assert inputs == [again[name].input(5, number) for number in range(20)]
        assert len(set(inputs)) > 15


def test_a_fault_is_reported_with_its_input() -> None:
    def attempt(data: bytes) -> None:
        if data != b"good":
            raise KeyError(len(data))

    attempts = Attempts(Target(name="planted", attempt=attempt, seeds=[b"good"]), seed=0)
    for number in range(20):
        attempts.attempt(number)
    assert attempts.findings.faults
    for fault in attempts.findings.faults:
        assert fault.startswith("planted, input ")
        assert "KeyError" in fault


def test_excessive_memory_is_reported() -> None:
    target = Target(name="planted", attempt=lambda _: bytes(2 * ALLOWED_BYTES), seeds=[b"good"])
    attempts = Attempts(target, seed=0)
    attempts.attempt(0)
    (fault,) = attempts.findings.faults
    assert "memory" in fault


def test_a_fault_of_a_batch_is_found_in_its_inputs() -> None:
    def attempt_batch(_: object) -> None:
        raise IndexError

    def attempt(data: bytes) -> None:
        if len(data) > 4:
            raise IndexError

    seeds = [b"good"]
    target = Target(name="planted", attempt=attempt, attempt_batch=attempt_batch, seeds=seeds)
    attempts = Attempts(target, seed=0)
    attempts.attempt_all(range(32))
    assert attempts.findings.faults
    assert attempts.findings.inputs == 32
