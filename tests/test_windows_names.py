"""Names that Windows cannot hold: never in a run's directory, and refused for a new plugin."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import ecotour

from ecotour.rundir.checkpoint import Store
from ecotour.rundir.stored_exhibits import slug

NAMES = ["con", "NUL", "aux", "com1", "Lpt9", 'a:b<>"|?*\\', "dot.", "space ", "../up"]


@pytest.mark.parametrize("name", NAMES)
def test_no_file_of_a_run_has_such_a_name(name: str, tmp_path: Path) -> None:
    store = Store(tmp_path)
    for made in (slug(name), store._of(name).name):
        assert not set(made) & set(':<>"|?*\\/')
        assert made.lower() not in ("con", "nul", "aux", "com1", "lpt9")
        assert made[-1] not in ". "
    store._of(name).mkdir(parents=True)
    assert store.names() == [name], "it can be told from its directory"


@pytest.mark.parametrize("name", ["con", "nul", "aux", "prn", "com1", "lpt9"])
def test_no_plugin_is_made_of_a_device(
    name: str, workdir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ecotour("new", name) == 2
    assert f"try {name}-demo" in capsys.readouterr().err
    assert not list(workdir.iterdir())


@pytest.mark.parametrize("out", ["con", "new/NUL", "aux.d", "com1/run"])
def test_no_run_is_put_where_a_device_is(
    out: str, workdir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ecotour("run", "jax", "--out", out) == 1
    assert f"--out {out}: " in capsys.readouterr().err
    assert not list(workdir.iterdir())


@pytest.mark.parametrize(
    ("words", "near"),
    [("run GAN", "gan"), ("RUN gan", "run"), ("list --JSON", "--json"),
     ("export x --to Markdown", "markdown"), ("run gan --data TFDS", "tfds")],
)  # fmt: skip
def test_a_near_miss_by_case_is_one(
    words: str, near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ecotour(*words.split()) == 2
    assert f"did you mean {near}?" in capsys.readouterr().err
