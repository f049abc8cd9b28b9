from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import stream_fs
from stream_fs.evaluate.errors import DataMalformed, DataNotFound
from stream_fs.evaluate.plan import (
    LARGE_REPETITIONS,
    DataSetCatalog,
    DataSetEntry,
    DataSetExperiment,
    Experiment,
    Options,
    Settings,
    SyntheticExperiment,
    make_plan,
    measured_sources,
    sample,
)

SMALL = DataSetEntry("small", "development", 100, (3, 4), 2, "abc")


def plan(options: Options, entry: DataSetEntry) -> list[Settings]:
    return [{"repetition": repetition} for repetition in range(options.repetitions_on(entry))]


ON_DATA = DataSetExperiment(plan, lambda _trial, _labels, _settings: [])
SYNTHETIC = SyntheticExperiment(lambda _: [{"repetition": 0}], lambda _: [])


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    x = np.arange(240.0).reshape(60, 4)
    np.savez(tmp_path / "own.npz", allow_pickle=False, view_0=x, labels=np.arange(60) % 3)
    masks = np.ones((2, 60, 1))
    masks[1, 5] = 0
    np.savez(tmp_path / "own_wen_folds.npz", allow_pickle=False, **{"del_0.5": masks})
    return tmp_path


def test_early_repetitions_come_first_and_synthetic_data_once() -> None:
    other = replace(SMALL, name="other")
    measurements = make_plan(
        {"on data": ON_DATA, "synthetic": SYNTHETIC}, [SMALL, other], Options(repetitions=2)
    )
    assert [(t.experiment, t.dataset, t.settings["repetition"]) for t in measurements] == [
        ("on data", "small", 0),
        ("on data", "other", 0),
        ("synthetic", "", 0),
        ("on data", "small", 1),
        ("on data", "other", 1),
    ]


def test_a_key_depends_on_settings_revision_content_and_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def key(experiment: Experiment, entry: DataSetEntry, options: Options) -> str:
        return make_plan({"name": experiment}, [entry], options)[0].key

    first = key(ON_DATA, SMALL, Options())
    assert first == key(ON_DATA, SMALL, Options(repetitions=9))
    assert first != key(ON_DATA, replace(SMALL, digest="abd"), Options())
    assert first != key(replace(ON_DATA, revision=2), SMALL, Options())
    assert first != key(ON_DATA, SMALL, Options(masks="published"))
    monkeypatch.setattr("stream_fs.evaluate.plan.source_digest", lambda: "other code")
    assert first != key(ON_DATA, SMALL, Options())


def test_large_sets_are_repeated_less_often() -> None:
    options = Options(repetitions=7)
    assert options.repetitions_on(SMALL) == 7
    assert options.repetitions_on(SMALL, 3) == 3
    assert replace(options, quick=True).repetitions_on(SMALL, 3) == 1
    assert options.repetitions_on(replace(SMALL, instances=9298)) == LARGE_REPETITIONS


def test_roles_of_own_and_built_in_sets(directory: Path) -> None:
    catalog = DataSetCatalog(directory)
    assert catalog.names() == ["own", "digits", "breast-cancer", "topics"]
    entry = catalog.entry("own")
    assert (entry.role, entry.instances, entry.dimensions) == ("user's own", 60, (4,))
    assert catalog.entry("breast-cancer").role == "held-out"
    assert DataSetCatalog(None).names() == ["digits", "breast-cancer", "topics"]


def test_an_unknown_set_is_an_error_that_lists_all(directory: Path) -> None:
    with pytest.raises(DataNotFound, match="no data set other; there are own, digits"):
        DataSetCatalog(directory).load("other")


def test_a_sample_is_the_same_every_time_and_keeps_rows_together(directory: Path) -> None:
    whole = DataSetCatalog(directory).load("own")
    part, again = sample(whole, 50), DataSetCatalog(directory, 50).load("own")
    assert part.instances == 50
    assert (part.views[0] == again.views[0]).all()
    at = (part.views[0][:, 0] / 4).astype(int)
    assert (np.diff(at) > 0).all()
    assert (part.labels == whole.labels[at]).all()
    assert sample(whole, 60) is whole
    assert (
        DataSetCatalog(directory, 50).entry("own").digest
        != DataSetCatalog(directory).entry("own").digest
    )


def test_published_masks_are_those_of_the_file(directory: Path) -> None:
    catalog = DataSetCatalog(directory)
    assert catalog.published_mask("own", 0.5, 0).all()
    assert np.flatnonzero(~catalog.published_mask("own", 0.5, 1)[:, 0]).tolist() == [5]
    assert catalog.published_mask("own", 0.5, 2).all()  # begins again after the last
    with pytest.raises(DataMalformed, match="without --rows"):
        DataSetCatalog(directory, 50).published_mask("own", 0.5, 0)
    with pytest.raises(DataNotFound, match="--data"):
        DataSetCatalog(None).published_mask("digits", 0.5, 0)


def test_the_source_digest_covers_everything_that_measures_and_nothing_that_reports() -> None:
    package = Path(stream_fs.__file__).parent
    sources = {str(path.relative_to(package)) for path in measured_sources()}
    assert sources >= {
        "selector/ranking.py",
        "selector/merge/combine.py",
        "evaluate/judges.py",
        "evaluate/methods/omvfs.py",
        "evaluate/experiments/ranking.py",
    }
    assert any(name.endswith((".c", ".pyx", ".h")) for name in sources)
    assert not [name for name in sources if name.startswith("evaluate/report")]
