"""`list` says no more than it knows; `--load` and `doctor` know more, whatever an import does."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from runs import ecotour
from test_hostile import HOSTILE

from ecotour.discovery import apart, registry
from ecotour.testing import install

GOOD = (
    "import ecotour\n@ecotour.hookimpl\ndef ecotour_demo():\n"
    "    return ecotour.Demo('x', type, print)\n"
)
SAID = {
    "good": "",
    "exits": "it ended the process (exit code 77) while it was loaded",
    "aborts": "it ended the process (SIGABRT) while it was loaded",
    "crash": "it ended the process (SIGSEGV) while it was loaded",
    "leaves": "it ended the process (exit code 0) while it was loaded: bye",
    "interrupts": "it ended the process (",
    "sys-exit": "cannot be imported: it called sys.exit(0)",
    "no-import": "cannot be imported: ModuleNotFoundError: No module named",
    "no-hook": "has no hook: define a function",
    "closes-stdout": "has no hook: define a function",
    "takes-stdout": "has no hook: define a function",
}
SOURCES = HOSTILE | {
    "good": GOOD,
    "leaves": "import os; os.write(1, b'hello\\nbye\\n'); os._exit(0)",
    "crash": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    "forks": "import subprocess, sys\n"
    "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(9)'])\n"
    "import os; os._exit(3)",
}


@pytest.fixture
def site(only_demos: Path) -> Path:
    return only_demos


def test_whatever_an_import_does_is_said_in_one_line(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = set(sys.modules)
    for name in SAID:
        install(site, name, SOURCES[name], distribution=f"hostile-{name}")
    assert ecotour("list", "--json") == 0
    listed = json.loads(capsys.readouterr().out)["demos"]
    assert {demo["status"] for demo in listed} == {"installed"}
    assert ecotour("list", "--load", "--json") == 0
    demos = {demo["name"]: demo for demo in json.loads(capsys.readouterr().out)["demos"]}
    for name, said in SAID.items():
        assert demos[name]["status"] == ("broken" if said else "ok"), demos[name]
        assert demos[name]["reason"].startswith(said), demos[name]
        assert len(demos[name]["reason"].splitlines()) <= 1
    assert not [one for one in set(sys.modules) - before if one.startswith("hostile_")]


@pytest.mark.parametrize("name", ["loops", "forks"])
def test_one_that_never_ends_is_ended_and_nobody_waits_for_its_children(
    site: Path, name: str
) -> None:
    install(site, name, SOURCES[name])
    (entry,) = registry.find()
    said = apart.proved(entry, 3)
    assert said.status == "broken"
    if name == "loops":
        assert said.reason == "it did not come to an end in 3 s while it was loaded"


def test_what_cannot_be_asked_for_is_not_loaded(site: Path) -> None:
    install(site, "gone", None)
    install(site, "off", "raise AssertionError")
    gone, off = registry.find(["off"])
    assert (apart.proved(gone), apart.proved(off)) == (gone, off)


def test_the_doctor_loads_them_too(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(site, "exits", HOSTILE["exits"])
    assert ecotour("doctor", "--json") == 1  # there is none that can run
    found = json.loads(capsys.readouterr().out)
    assert "demo exits is broken: it ended the process (exit code 77)" in "".join(found["findings"])
    assert found["sections"]["demos"]["exits"] == "broken (throwaway-exits 1.0)"
