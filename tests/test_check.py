"""Each finding of a check against a demo that has exactly that fault; and a sound demo without."""

from __future__ import annotations

import dataclasses
import json
import logging
import math
import os
import random
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import faulty
import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest

from ecotour import cli
from ecotour.checking import bench, loading, settings
from ecotour.checking.page import page as findings_page
from ecotour.checking.proving import prove
from ecotour.checking.table import TABLE, Report, fill
from ecotour.checking.targets import subject_for
from ecotour.rundir import checkpoint
from ecotour.testing import install

fill()


@pytest.fixture(scope="module", autouse=True)
def _compile_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """These demos have nearly all of their programs in common."""
    names = (
        "jax_compilation_cache_dir",
        "jax_persistent_cache_min_compile_time_secs",
        "jax_persistent_cache_min_entry_size_bytes",
        "jax_numpy_dtype_promotion",
    )
    before = {name: getattr(jax.config, name) for name in names}
    values = (str(tmp_path_factory.mktemp("compiled")), 0.0, -1, "standard")
    for name, value in zip(names, values, strict=True):
        jax.config.update(name, value)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


def check(path: Path, fault: str) -> Report:
    path.write_text(faulty.source(fault))
    subject = subject_for(str(path))
    subject.once("before", settings.settings)
    return prove(subject)


ELSEWHERE = {"devices"}
"""Needs a process with two devices."""


@pytest.mark.parametrize("fault", [fault for fault in faulty.FAULTS if fault not in ELSEWHERE])
def test_a_fault_is_caught_by_exactly_its_finding(fault: str, tmp_path: Path) -> None:
    report = check(tmp_path / "faulty.py", fault)
    assert report.ids == [fault.partition(",")[0]], [found.line for found in report.found]
    for found in report.found:
        assert "\n" not in found.line
        assert found.line.startswith(found.id + ": ")
        assert TABLE[found.id].mend in found.line


def test_a_sound_demo_has_none_and_the_process_is_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)  # as a demo in a file has it, to import its neighbours
    before = settings.settings()
    report = check(tmp_path / "sound.py", "")
    assert report.ids == []
    assert report.unproved == {"devices": "this process has one device"}
    proofs = {name for name, finding in TABLE.items() if finding.proof}
    assert set(report.proved) == proofs - {"devices"}
    assert settings.changes(before, settings.settings()) == []


def test_settings_of_every_kind_are_noticed_and_put_back(tmp_path: Path) -> None:
    changes: dict[str, Callable[[], object]] = {
        "jax.config.jax_enable_x64": lambda: jax.config.update("jax_enable_x64", True),
        "jax.config.jax_debug_nans": lambda: jax.config.update("jax_debug_nans", True),
        "numpy.random's global state": lambda: np.random.seed(1),
        "random's global state": lambda: random.seed(1),
        "numpy.seterr": lambda: np.seterr(over="raise"),
        "matplotlib.rcParams": lambda: matplotlib.rcParams.update({"lines.linewidth": 7.0}),
        "os.environ": lambda: os.environ.update(ECOTOUR_TEST="1"),
        "os.getcwd()": lambda: os.chdir(tmp_path),
        "the handler of SIGUSR1": lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN),
        "warnings.filters": lambda: warnings.simplefilter("ignore"),
        "logging": lambda: logging.disable(logging.ERROR),
        "sys.getrecursionlimit()": lambda: sys.setrecursionlimit(5000),
    }
    before = settings.settings()
    for name, change in changes.items():
        change()
        (said,) = settings.changes(before, settings.settings())
        assert said.startswith(name)
        settings.restore(before)
        assert settings.changes(before, settings.settings()) == []


def test_a_message_through_absl_is_no_change_of_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])
    before = settings.settings()
    logging.basicConfig()  # as absl does at its first word
    assert [type(h) for h in logging.root.handlers] == [logging.StreamHandler]
    assert settings.changes(before, settings.settings()) == []


@pytest.mark.parametrize(
    ("now", "found"),
    [
        ([1.0, math.nan, math.inf], []),
        ([1.0 + 1e-7, math.nan, math.inf], []),
        ([1.5, math.nan, math.inf], ["state['path']"]),
        ([1.0, 2.0, math.inf], ["state['path']"]),
        ([1.0, math.nan, -math.inf], ["state['path']"]),
        ([math.nan, math.nan, math.inf], ["state['path']"]),
    ],
)
def test_what_is_not_finite_is_compared_by_its_place(now: list[float], found: list[str]) -> None:
    frozen = checkpoint.freeze({"path": jnp.array([1.0, math.nan, math.inf], jnp.float32)})
    assert bench.close({"path": jnp.array(now, jnp.float32)}, frozen) == found


def test_an_import_over_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "IMPORT_BUDGET_S", 0.05)
    path = tmp_path / "slow.py"
    burn = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"
    path.write_text(faulty.source("").replace("#TOP", burn))
    subject = subject_for(str(path))
    assert prove(subject).ids == ["import-slow"]


def test_the_page_has_every_finding() -> None:
    page = Path(__file__).parents[1] / "docs" / "findings.md"
    assert page.read_text(encoding="utf-8") == findings_page()
    headings = re.findall(r"^## (.+)$", findings_page(), re.MULTILINE)
    assert headings == list(TABLE)


def test_every_finding_is_proved_by_a_demo_that_has_it() -> None:
    elsewhere = {"discovery-imports", "process-ended", "no-return", "import-slow", "unexpected"}
    assert {name.partition(",")[0] for name in faulty.FAULTS} == set(TABLE) - elsewhere


def test_the_tutorial_is_a_demo_without_a_finding(tmp_path: Path) -> None:
    page = Path(__file__).parents[1] / "docs" / "adding-a-demo.md"
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "coin.py").write_text("\n\n".join(blocks))
    subject = subject_for(str(tmp_path / "coin.py"))
    subject.once("before", settings.settings)
    report = prove(subject)
    assert report.ids == [], [found.line for found in report.found]
    assert cli.main(["run", str(tmp_path / "coin.py"), "--strict", "--quiet", "--out",
                     str(tmp_path / "run")]) == 0  # fmt: skip


def apart_at(
    path: Path, *words: str, **environment: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """``ecotour check --json`` as a user types it."""
    command = [sys.executable, "-m", "ecotour", "check", str(path), "--json", *words]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    return done, json.loads(done.stdout)


def test_two_devices_of_which_a_demo_counts_both(tmp_path: Path) -> None:
    path = tmp_path / "counts.py"
    path.write_text(faulty.source("devices"))
    done, told = apart_at(path)
    assert done.returncode == 1
    assert [found["id"] for found in told["findings"]] == ["devices"]
    assert told["unproved"] == {}


def test_a_demo_that_ends_the_process_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / "ends.py"
    path.write_text(faulty.SOUND.replace("#STEP", "__import__('os')._exit(7)"))
    done, told = apart_at(path)
    (found,) = told["findings"]
    assert (done.returncode, found["id"]) == (1, "process-ended")
    assert "exit code 7, while looking for settings" in found["detail"]


def test_a_demo_that_does_not_return_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / "loops.py"
    path.write_text("while True: pass")
    done, told = apart_at(path, "--timeout", "2")
    (found,) = told["findings"]
    assert (done.returncode, found["id"]) == (1, "no-return")


def test_what_python_starts_with_is_noticed(tmp_path: Path) -> None:
    install(tmp_path, "sound", faulty.source(""))
    (tmp_path / "sitecustomize.py").write_text("import numpy")
    done, told = apart_at(Path("sound"), PYTHONPATH=str(tmp_path))
    (found,) = told["findings"]
    assert (done.returncode, found["id"], found["detail"]) == (1, "discovery-imports", "numpy")


def test_what_cannot_be_asked_for_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "gna"]) == 2
    assert "did you mean gan" in capsys.readouterr().err
    assert cli.main(["check", "./absent.py"]) == 2
    assert "no such file" in capsys.readouterr().err


def test_an_exception_that_no_finding_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sound.py"
    path.write_text(faulty.source(""))
    finding = dataclasses.replace(TABLE["argv"], proof=lambda subject: 1 / 0)
    monkeypatch.setitem(TABLE, "argv", finding)
    report = prove(subject_for(str(path)))
    assert report.ids == ["unexpected"]
    assert "while looking for argv: ZeroDivisionError" in report.found[0].detail
