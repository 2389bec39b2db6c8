"""JAX's own debugging switches: the runner under each of them, and every stop's steps traced.

The runner is run in full, in a process of its own, since a user sets the switches for a process.
The stops are imported anew, built and traced, which is where promotion and keys are looked at.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import pytest
from runs import DEMO, environment, rows

from ecotour.checking.subject import Subject
from ecotour.checking.switches import SWITCHES
from ecotour.checking.targets import subject_for

ROOT = Path(__file__).parents[1]
SETTINGS: dict[str, dict[str, Any]] = {
    "JAX_DEBUG_KEY_REUSE=1": {"jax_debug_key_reuse": True},
    "JAX_NUMPY_DTYPE_PROMOTION=strict": {"jax_numpy_dtype_promotion": "strict"},
    "JAX_NUMPY_RANK_PROMOTION=raise": {"jax_numpy_rank_promotion": "raise"},
    "JAX_TRANSFER_GUARD=disallow": {"jax_transfer_guard": "disallow"},
    "JAX_DEBUG_NANS=1": {"jax_debug_nans": True},
    "JAX_CHECK_TRACER_LEAKS=1": {"jax_check_tracer_leaks": True},
    "JAX_ENABLE_CHECKS=1": {"jax_enable_checks": True},
    "JAX_THREEFRY_PARTITIONABLE=0": {"jax_threefry_partitionable": False},
    "JAX_THREEFRY_PARTITIONABLE=1": {"jax_threefry_partitionable": True},
}
CASES: dict[str, tuple[str, ...]] = {name: (name,) for name in SETTINGS}
CASES |= {"the first four": tuple(SETTINGS)[:4], "all": tuple(SETTINGS)}

ALL_IN_TURN = """
import json, pathlib, sys
import jax
from ecotour import cli
demo, out, cases = sys.argv[1], pathlib.Path(sys.argv[2]), json.loads(sys.argv[3])
codes = {}
for number, (name, settings) in enumerate(cases.items()):
    before = {key: getattr(jax.config, key) for key in settings}
    for key, value in settings.items():
        jax.config.update(key, value)
    run = str(out / str(number))
    first = ["run", demo, "--steps", "4", "--checkpoint-every", "2", "--quiet", "--out", run]
    codes[name] = [cli.main(first), cli.main(["resume", run, "--steps", "6", "--quiet"])]
    for key, value in before.items():
        jax.config.update(key, value)
print(json.dumps(codes))
"""


def settings_of(case: str) -> dict[str, Any]:
    return {key: value for name in CASES[case] for key, value in SETTINGS[name].items()}


def test_a_run_and_its_going_on_stand_each_switch_and_all_together(tmp_path: Path) -> None:
    told = json.dumps({case: settings_of(case) for case in CASES})
    done = subprocess.run(
        [sys.executable, "-c", ALL_IN_TURN, DEMO, str(tmp_path), told],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    codes = json.loads(done.stdout.splitlines()[-1])
    assert codes == {case: [0, 0] for case in CASES}, done.stderr
    for number in range(len(CASES)):
        record = json.loads((tmp_path / str(number) / "run.json").read_text())
        assert not record["warnings"], list(CASES)[number]
    numbers = [rows(tmp_path / str(number)) for number in range(len(CASES))]
    same = [n for n, case in enumerate(CASES) if case != "JAX_THREEFRY_PARTITIONABLE=0"]
    assert all(numbers[n] == numbers[0] for n in same), "a switch changes no number"


def test_all_together_from_the_environment(tmp_path: Path) -> None:
    given = dict(name.split("=") for name in SETTINGS)
    command = [sys.executable, "-m", "ecotour", "run", DEMO, "--steps", "3", "--quiet"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "run")], env=environment(**given),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def traced(subject: Subject) -> None:
    with contextlib.ExitStack() as stack:
        for name in set(SWITCHES) - {"JAX_CHECK_TRACER_LEAKS=1"}:  # takes minutes for all stops
            stack.enter_context(SWITCHES[name]())
        stack.enter_context(jax.debug_key_reuse(True))
        subject.shapes_of_another_life()


@pytest.mark.parametrize("stop", ["chex", "gan", "jax", "jraph", "optax", "rlax"])
def test_a_stop_is_imported_built_and_traced_under_the_switches(stop: str) -> None:
    traced(subject_for(stop))


def test_the_tree_of_the_docs_too() -> None:
    traced(subject_for(str(ROOT / "docs" / "examples" / "equinox_tree.py")))
