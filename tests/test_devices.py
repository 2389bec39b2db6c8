"""Demos that ask for several CPU devices: how many they get, and runs that go on with others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import runs

from ecotour.rundir.checkpoint import Store

SPREAD = Path(__file__).parent / "demos" / "spread.py"
CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
two_cores = pytest.mark.skipif(len(CORES) < 2, reason="this process may not use two cores")


def ecotour(*arguments: object, cores: list[int] = CORES, **variables: str) -> Path:
    """Run a command on these cores alone; the run's directory is its last argument."""
    bound = (
        f"import os, sys; os.sched_setaffinity(0, {cores}); "
        "os.execv(sys.executable, [sys.executable, '-m', 'ecotour', *sys.argv[1:]])"
    )
    command = [sys.executable, "-c", bound, *map(str, arguments), "--quiet"]
    done = subprocess.run(
        command, env=runs.environment(**variables), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return Path(str(arguments[-1]))


def digest(out: Path, step: int) -> Any:
    """Of the state after ``step``."""
    return [leaf["sha256"] for leaf in Store(out).about("descend", step)["leaves"]]


def devices(out: Path) -> int:
    """How many the run had."""
    return len(runs.record(out)["environment"]["devices"])


@two_cores
def test_as_many_devices_as_asked_for_and_no_more_than_cores(tmp_path: Path) -> None:
    assert devices(ecotour("run", SPREAD, "--strict", "--out", tmp_path / "two")) == 2
    alone = tmp_path / "alone"
    assert devices(ecotour("run", SPREAD, "--strict", "--out", alone, cores=CORES[:1])) == 1
    chosen = {"JAX_NUM_CPU_DEVICES": "1"}
    assert devices(ecotour("run", SPREAD, "--strict", "--out", tmp_path / "user", **chosen)) == 1
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    assert devices(ecotour("run", SPREAD, "--strict", "--out", tmp_path / "four", **flags)) == 4
    losses = [
        [row["loss"] for row in runs.rows(tmp_path / name)] for name in ("two", "alone", "four")
    ]
    np.testing.assert_allclose(losses[1:], losses[:1] * 2, rtol=1e-3, atol=1e-9)


@two_cores
def test_a_run_on_two_devices_goes_on_bit_for_bit_and_on_one_as_well(tmp_path: Path) -> None:
    straight = ecotour("run", SPREAD, "--steps", 40, "--out", tmp_path / "straight")
    half = ecotour("run", SPREAD, "--steps", 20, "--out", tmp_path / "half")
    again = ecotour("run", SPREAD, "--steps", 20, "--out", tmp_path / "again")
    ecotour("resume", "--steps", 40, half)
    assert devices(half) == 2
    assert digest(half, 40) == digest(straight, 40)
    ecotour("resume", "--steps", 40, again, cores=CORES[:1])
    assert devices(again) == 1
    changed = "the number of devices has changed from 2 to 1 since"
    assert any(changed in said for said in runs.record(again)["warnings"])
    last = [runs.rows(out)[-1]["loss"] for out in (straight, again)]
    np.testing.assert_allclose(*last, rtol=1e-3, atol=1e-9)


@two_cores
def test_thousands_of_short_steps_never_wait_for_each_other(tmp_path: Path) -> None:
    """With more under way than the devices have room for, a sum over them waits for ever."""
    out = ecotour("run", SPREAD, "--steps", 5_000, "--log-every", 5_000, "--out", tmp_path / "run")
    assert runs.record(out)["status"] == "finished"
