"""``ecotour new``: the plugin that it writes works untouched; what cannot be is refused."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ecotour import cli
from ecotour.authoring import scaffold
from ecotour.errors import UsageError


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "name is empty: give a value"),
        ("  ", "needs a name"),
        ("class", "keyword"),
        ("match", "keyword"),
        ("json", "Python's own library"),
        ("gan", "there is a demo 'gan' already, of ecotour-gan 0.1.0"),
        ("numpy", "would hide it: try numpy-demo"),
        ("a/b", "a path"),
        ("..", "a path"),
        ("My Demo", "small letters"),
        ("1st", "small letters"),
        ("dÉmo", "small letters"),
        ("x" * 60, "at most 41"),
    ],
)
def test_a_name_that_cannot_be_is_refused_with_the_reason(
    name: str, said: str, workdir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["new", name, "--json"]) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert told.err.count("\n") == 1
    assert said in json.loads(told.out)["error"]
    assert list(workdir.iterdir()) == []


def test_nothing_is_overwritten_and_nothing_half_written(workdir: Path) -> None:
    (workdir / "my-demo").mkdir()
    (workdir / "my-demo" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="exists and is not empty"):
        scaffold.create("my-demo")
    (workdir / "file").write_text("mine")
    with pytest.raises(UsageError, match="exists and is not empty"):
        scaffold.create("my-demo", workdir / "file")
    with pytest.raises(UsageError, match="cannot be written"):
        scaffold.create("my-demo", workdir / "file" / "below")
    assert sorted(p.name for p in workdir.rglob("*")) == ["file", "mine.txt", "my-demo"]


def test_dir_chooses_the_place_and_may_be_empty(workdir: Path) -> None:
    (workdir / "there").mkdir()
    assert cli.main(["new", "my-demo", "--dir", "there"]) == 0
    made = sorted(str(p.relative_to(workdir)) for p in workdir.rglob("*") if p.is_file())
    assert made == [
        "there/README.md",
        "there/my_demo/__init__.py",
        "there/my_demo/demo.py",
        "there/my_demo/py.typed",
        "there/pyproject.toml",
        "there/tests/test_my_demo.py",
    ]


def test_the_plugin_installs_lists_runs_checks_and_passes_its_own_test(tmp_path: Path) -> None:
    plugin = scaffold.create("my-demo", tmp_path / "my-demo")
    site = tmp_path / "site"
    install(plugin.directory, site)
    environment = {
        **os.environ,
        "PYTHONPATH": str(site),
        "ECOTOUR_CACHE_DIR": os.environ["ECOTOUR_CACHE_DIR"],
    }

    def ecotour(*words: str) -> str:
        command = [sys.executable, "-m", "ecotour", *words]
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    listed = {demo["name"]: demo for demo in json.loads(ecotour("list", "--json"))["demos"]}
    assert listed["my-demo"]["status"] == "installed"
    assert listed["my-demo"]["distribution"] == "ecotour-my-demo"
    record = json.loads(ecotour("run", "my-demo", "--strict", "--out", "run", "--json"))
    assert record["distribution"] == "ecotour-my-demo 0.1.0"
    assert [check["passed"] for check in record["checks"]] == [True]
    # its own test is `ecotour check`
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    tested = subprocess.run(
        command, env=environment, cwd=plugin.directory, capture_output=True, text=True, check=False
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "1 passed" in tested.stdout


def install(project: Path, site: Path) -> None:
    """Install as a user does, but for what is downloaded: by uv, or by pip where there is none."""
    uv = shutil.which("uv")
    if not uv and importlib.util.find_spec("pip") is None:
        pytest.skip("there is neither uv nor pip to install with")
    pip = [uv, "pip"] if uv else [sys.executable, "-m", "pip"]
    python = ["--python", sys.executable, "--offline"] if uv else ["--no-index"]
    command = [*pip, "install", "--quiet", "--no-deps", "--no-build-isolation", *python]
    subprocess.run([*command, "--target", str(site), str(project)], check=True)
