"""Hostile plugins on a real path: list, help and another demo's run behave all the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ecotour.testing import install

HOOK = "import ecotour\n@ecotour.hookimpl\ndef ecotour_demo():\n    "

HOSTILE: dict[str, str | None] = {
    "exits": "import os; os._exit(77)",
    "aborts": "import os; os.abort()",
    "sys-exit": "import sys; sys.exit(0)",
    "interrupts": "raise KeyboardInterrupt",
    "base-exception": "class Odd(BaseException): ...\nraise Odd('no')",
    "loops": "while True: pass",
    "recurses": "def f(): f()\nf()",
    "no-module": None,
    "no-import": "import there_is_no_such_module",
    "no-syntax": "def broken(:",
    "no-text": "\x00",
    "no-hook": "x = 1",
    "unmarked": "def ecotour_demo(): ...",
    "misspelt": "import ecotour\n@ecotour.hookimpl\ndef ecotour_dmeo(): ...",
    "greedy-hook": "import ecotour\n@ecotour.hookimpl\ndef ecotour_demo(config, more): ...",
    "wrong-value": HOOK + "return 3",
    "failing-hook": HOOK + "1 / 0",
    "prints": "import os; print('{}'); os.write(1, b'[]')",
    "closes-stdout": "import os, sys; sys.stdout.close(); os.close(1)",
    "takes-stdout": "import sys; sys.stdout = sys.stderr = None",
    "changes-jax": "import jax; jax.config.update('jax_enable_x64', True)",
    "patches": "import ecotour.discovery.registry as r, json; r.find = json.dumps = None",
    "moves": "import os, tempfile; os.chdir(tempfile.gettempdir())",
    "signals": "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)",
}
LOADED_SAFELY = [
    name
    for name, source in HOSTILE.items()
    if name
    in (
        "sys-exit",
        "base-exception",
        "recurses",
        "no-module",
        "no-import",
        "no-syntax",
        "no-text",
        "no-hook",
        "unmarked",
        "misspelt",
        "greedy-hook",
        "wrong-value",
        "failing-hook",
        "prints",
    )
]


def ecotour(site: Path, *words: str, **given: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(site), **given}
    return subprocess.run(
        [sys.executable, "-m", "ecotour", *words],
        env=environment,
        cwd=site.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of modules with all of them, and with damaged metadata besides.

    Without our doing JAX itself does not start with `garbled` or `bad-line` beside it: it reads
    everybody's entry points, to find its own plugins.
    """
    site = tmp_path_factory.mktemp("full") / "site"
    for name, source in HOSTILE.items():
        install(site, name, source, distribution=f"hostile-{name}")
    for name, points, metadata in (
        ("garbled", b"[ecotour.demos\n\xff\xfe = = [\n", b"Name: garbled\n"),
        ("no-name", b"[ecotour.demos]\nnameless = os\n", b"\xff\xfe"),
        ("bad-line", b"[ecotour.demos]\nx y z\n", b"Name: bad-line\nVersion: 1\n"),
        ("escapes", b"[ecotour.demos]\n\x1b[31mred = os\n../up = os\n", b"Name: escapes\n"),
        ("no-value", b"[ecotour.demos]\nempty =\n", b"Name: no-value\nVersion: 1\n"),
        ("future", b"[ecotour.demos]\nfuture = os\n", b"Name: f\nRequires-Dist: ecotour>=99\n"),
        ("unreadable", b"[ecotour.demos]\nodd = os\n", b"Name: o\nRequires-Dist: ecotour @@ 3\n"),
    ):
        info = site / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "entry_points.txt").write_bytes(points)
        (info / "METADATA").write_bytes(metadata)
    return site


def test_all_are_listed_with_their_status_and_none_is_imported(full: Path) -> None:
    done = ecotour(full, "list", "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    demos = {demo["name"]: demo for demo in json.loads(done.stdout)["demos"]}
    assert {"chex", "gan", "jax", "jraph", "optax", "rlax", *HOSTILE} <= set(demos)
    assert {name for name in HOSTILE if demos[name]["status"] != "installed"} == {"no-module"}
    assert "'hostile_no_module', which is not there" in demos["no-module"]["reason"]
    assert demos["gan"]["status"] == "installed"
    assert demos["future"]["status"] == "incompatible"
    assert demos["odd"]["status"] == "incompatible"
    assert demos["nameless"]["distribution"] == "no-name-1.0.dist-info"
    assert all(demo["name"].isprintable() for demo in demos.values())
    assert demos["../up"]["status"] == "broken"


def test_the_table_and_the_help_are_whole(full: Path) -> None:
    table = ecotour(full, "list")
    assert table.returncode == 0, table.stderr
    assert "\x1b" not in table.stdout
    assert "hostile-exits" in table.stdout
    for words in (("--help",), ("run", "--help"), ("--version",)):
        told = ecotour(full, *words)
        assert told.returncode == 0, told.stderr
        assert told.stderr == ""


def test_the_doctor_names_what_is_damaged_and_finds_the_devices(full: Path) -> None:
    others = ",".join([*HOSTILE, "chex", "gan", "jraph", "optax", "rlax"])
    done = ecotour(full, "doctor", "--json", ECOTOUR_DISABLE=others)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (said,) = [line for line in found["findings"] if "garbled" in line]
    assert said.startswith("the entry points of garbled cannot be read: UnicodeDecodeError: ")
    assert "cpu" in found["sections"]["machine"]["devices"].lower()


def test_another_demo_runs_and_its_json_is_one_document(full: Path) -> None:
    done = ecotour(
        full, "run", "gan", "--steps", "1", "--batch-size", "2", "--data", "embedded",
        "--out", "run", "--json", "--quiet",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert (record["demo"], record["status"]) == ("gan", "finished")


@pytest.mark.parametrize("name", LOADED_SAFELY)
def test_the_one_that_was_asked_for_is_refused_in_one_line(name: str, full: Path) -> None:
    done = ecotour(full, "show", name, "--json")
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if "ecotour: " in line]
    assert len(lines) == 1
    assert "Traceback" not in done.stderr
    assert f"hostile-{name}" in lines[0]
    assert json.loads(done.stdout)["status"] == "failed"


def test_a_second_gan_does_not_win_and_both_are_named(tmp_path: Path) -> None:
    site = tmp_path / "site"
    install(site, "gan", "raise RuntimeError('imported')", distribution="another-gan")
    done = ecotour(site, "show", "gan")
    assert done.returncode == 1
    assert "another-gan 1.0 and ecotour-gan 0.1.0" in done.stderr
    chosen = ecotour(site, "show", "gan", "--provider", "ecotour-gan", "--json")
    assert json.loads(chosen.stdout)["distribution"] == "ecotour-gan"


def test_a_plugin_named_like_a_builtin_is_disabled_like_one(tmp_path: Path) -> None:
    site = tmp_path / "site"
    install(site, "exits", HOSTILE["exits"])
    done = ecotour(site, "list", "--json", ECOTOUR_DISABLE="exits,gan")
    demos = {demo["name"]: demo["status"] for demo in json.loads(done.stdout)["demos"]}
    assert (demos["exits"], demos["gan"], demos["jax"]) == ("disabled", "disabled", "installed")


STEP = """
import dataclasses, os, sys
import ecotour, jax.numpy as jnp

@dataclasses.dataclass(frozen=True)
class Config:
    pass

def init(key, batch):
    return jnp.zeros(())

def step(state, batch, key):
    {body}
    return state + 1, {{"count": state}}

@ecotour.hookimpl
def ecotour_demo():
    made = ecotour.Step(init, step, 2)
    judge = lambda outcome: ecotour.Verdict(())
    return ecotour.Demo("Counts.", Config, lambda c: ecotour.Program({{"count": made}}, judge))
"""


def test_sys_exit_in_a_step_is_a_failed_run(tmp_path: Path) -> None:
    (tmp_path / "leaves.py").write_text(STEP.format(body="sys.exit(0)"))
    (tmp_path / "site").mkdir()
    done = ecotour(tmp_path / "site", "run", "./leaves.py", "--out", "run", "--json", "--quiet")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["status"] == "failed"
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "failed"


def test_what_a_step_prints_stays_out_of_the_json(tmp_path: Path) -> None:
    (tmp_path / "talks.py").write_text(
        STEP.format(body="print('{}'); os.write(1, b'[]'); os.system('echo {}')")
    )
    (tmp_path / "site").mkdir()
    done = ecotour(tmp_path / "site", "run", "./talks.py", "--out", "run", "--json", "--quiet")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "finished"
