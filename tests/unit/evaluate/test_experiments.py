"""Every experiment, and what it takes to add one."""

from __future__ import annotations

from pathlib import Path

import pytest

from stream_fs.cli.main import main
from stream_fs.evaluate import experiments
from stream_fs.evaluate.experiments import experiment_names, load_experiment
from stream_fs.evaluate.methods.registry import METHODS
from stream_fs.evaluate.plan import (
    LARGE_REPETITIONS,
    DataSetEntry,
    DataSetExperiment,
    Options,
)
from stream_fs.evaluate.report import contents, cost
from stream_fs.service.exit_codes import ExitCode
from tests.support.experiments import measured, plan_settings, planned

LARGE = DataSetEntry("large", "development", 9298, (24, 24, 24), 4, "abc")

EXPERIMENT = """
from stream_fs.evaluate.plan import SyntheticExperiment

EXPERIMENT = SyntheticExperiment(
    settings=lambda options: [{"repetition": r} for r in range(options.repetitions_up_to(2))],
    measure=lambda settings: [{"method": "abacus", "beads": 40 + int(settings["repetition"])}],
)
"""
TABLES = """
    if rows := results.rows_of("counting-beads"):
        body = [[str(row["method"]), str(row["beads"])] for row in rows]
        yield Table("Beads", ["method", "beads"], body)
"""
COMPARISON = """
        "counting-beads": Comparison(("method",)),
"""


def test_an_experiment_is_one_module_and_its_tables_in_a_section_of_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "counting_beads.py").write_text(EXPERIMENT)
    monkeypatch.setattr(experiments, "__path__", [*experiments.__path__, str(tmp_path)])
    source = Path(cost.__file__).read_text(encoding="utf-8")
    for before, addition in (("\n\n\nSECTION =", TABLES), ("    },\n    tables,\n", COMPARISON)):
        assert source.count(before) == 1
        source = source.replace(before, f"\n{addition.strip(chr(10))}\n{before.lstrip(chr(10))}")
    edited = dict(vars(cost))
    exec(compile(source, "cost.py", "exec"), edited)
    sections = [edited["SECTION"] if s is cost.SECTION else s for s in contents.SECTIONS]
    monkeypatch.setattr(contents, "SECTIONS", sections)

    assert "counting-beads" in experiment_names()
    with pytest.raises(SystemExit):
        main(["evaluate", "--help"])
    assert "counting-beads" in capsys.readouterr().out.replace("\n", "").replace(" ", "")
    arguments = ["evaluate", "--output", str(tmp_path / "o"), "--experiments", "counting-beads"]
    assert main([*arguments, "--sets", "topics"]) == ExitCode.OK
    assert "| abacus | 41 |" in (tmp_path / "o" / "report.md").read_text(encoding="utf-8")
    assert (tmp_path / "o" / "counting-beads.csv").is_file()


def test_every_experiment_is_reported() -> None:
    source = "".join(
        path.read_text(encoding="utf-8") for path in Path(cost.__file__).parent.glob("*.py")
    )
    assert [name for name in experiment_names() if f'rows_of("{name}")' not in source] == []


@pytest.mark.parametrize("name", experiment_names())
def test_settings_of_a_plan_are_all_different(name: str) -> None:
    plan = plan_settings(name, Options())
    assert plan
    assert len({str(sorted(settings.items())) for settings in plan}) == len(plan)


@pytest.mark.parametrize("name", experiment_names())
def test_settings_name_the_parameters_behind_them(name: str) -> None:
    # A default that changes has to be measured again.
    measured_identities = {settings["identity"] for settings in plan_settings(name, Options())}
    assert all(measured_identities)
    identities = {METHODS["default"].identity, METHODS["paper"].identity}
    assert name in ("grid", "ablation", "sensitivity", "speed") or identities & measured_identities


@pytest.mark.parametrize("name", experiment_names())
def test_a_large_set_is_repeated_less_often(name: str) -> None:
    if isinstance(load_experiment(name), DataSetExperiment):
        repetitions = {settings["repetition"] for settings in plan_settings(name, Options(), LARGE)}
        assert repetitions <= set(range(LARGE_REPETITIONS))


@pytest.mark.parametrize(
    ("name", "wanted", "count"),
    [
        ("ablation", {"variant": "no redundancy"}, 4),
        ("sensitivity", {"parameter": "beta"}, 2),
        ("missing", {"missing": 0.3, "method": "default"}, 2),
    ],
)
def test_the_other_comparisons_have_a_row_per_share_and_judge(
    name: str, wanted: dict[str, object], count: int
) -> None:
    rows = measured(name, planned(name, **wanted))
    assert len(rows) == count
    assert max(float(row["nmi"]) for row in rows) > 0.5
