"""Variables of the environment that JAX or XLA cannot read are named, and no demo is blamed."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import jax
import pytest
from runs import DEMO

from ecotour.machine import variables

TRUTH = "it may be 1, true, yes or on, or 0, false, no or off"


def ecotour(*words: str, **given: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ecotour", *words],
        env=os.environ | given, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("JAX_ENABLE_X64", "banana", f"JAX_ENABLE_X64=banana: JAX cannot read it, {TRUTH}"),
        ("JAX_ENABLE_X64", "", f"JAX_ENABLE_X64='': JAX cannot read it, {TRUTH}"),
        ("JAX_TRANSFER_GUARD_HOST_TO_DEVICE", "x", "it may be allow, log, disallow"),
        # its reader's message has neither the name nor what is allowed
        ("JAX_SERIALIZATION_VERSION", "x", "JAX_SERIALIZATION_VERSION=x: JAX cannot read it, it"),
        ("XLA_FLAGS", "--nonsense --more=1", "XLA_FLAGS: XLA does not know --nonsense --more=1:"),
        (
            "XLA_FLAGS",
            "--xla_cpu_enable_fast_math=banana",
            "XLA_FLAGS: the value of --xla_cpu_enable_fast_math=banana ",
        ),
        ("XLA_FLAGS", "nonsense", "XLA_FLAGS=nonsense: a flag begins with --"),
    ],
)
def test_a_faulty_variable_is_named_in_one_line(name: str, value: str, said: str) -> None:
    done = ecotour("run", DEMO, "--json", **{name: value})
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"ecotour: {name}")
    assert said in line
    assert line.endswith(f": correct it, or unset {name}")
    assert json.loads(done.stdout)["error"] == line.removeprefix("ecotour: ")


@pytest.mark.parametrize(
    ("name", "value"), [("JAX_ENABLE_X64", "banana"), ("XLA_FLAGS", "--nonsense")]
)
def test_the_doctor_answers_and_names_it_and_so_does_a_check(name: str, value: str) -> None:
    done = ecotour("doctor", "--json", **{name: value})
    assert done.returncode == 1
    examined = json.loads(done.stdout)
    assert not examined["can_run"]
    assert [one for one in examined["findings"] if one.startswith(name) and value in one]
    checked = ecotour("check", DEMO, **{name: value})
    assert checked.returncode == 1
    assert checked.stderr.startswith(f"ecotour: {name}")
    assert value in checked.stderr


def test_what_needs_no_jax_is_not_held_up() -> None:
    done = ecotour("list", JAX_ENABLE_X64="banana", XLA_FLAGS="--nonsense")
    assert (done.returncode, done.stderr) == (0, "")


def test_every_option_of_jax_is_named_with_what_it_may_be() -> None:
    """Each that JAX reads in the module of its settings, which is carried out again for it."""
    done = subprocess.run(
        [sys.executable, __file__], capture_output=True, text=True, check=True, timeout=300
    )
    said = json.loads(done.stdout)
    assert len(said) > 50
    for name, line in said.items():
        assert line.startswith(f"{name}=banana: JAX cannot read it"), name
        assert "it may be " in line or name == "JAX_DEFAULT_DEVICE", line


def test_good_flags_are_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise AssertionError("tried again")

    monkeypatch.setenv("ECOTOUR_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    variables._fault_of_xla.cache_clear()
    assert variables.fault() == ""
    variables._fault_of_xla.cache_clear()
    monkeypatch.setattr(subprocess, "run", fail)
    assert variables.fault() == ""
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    with pytest.raises(AssertionError, match="tried again"):
        variables.fault()


def test_a_misspelt_variable_is_only_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_ENABLE_X46", "1")
    monkeypatch.setenv("JAX_ENABLE_X64", "0")
    monkeypatch.setenv("JAX_NOTHING_LIKE_IT", "1")
    assert variables.fault() == ""
    assert variables.misspelt() == ["JAX ignores JAX_ENABLE_X46: did you mean JAX_ENABLE_X64?"]


def _each_option() -> dict[str, str]:
    """By the name of a variable that JAX cannot read where it is ``banana``: what we say."""
    from jax._src import config

    said = {}
    for name in [option.upper() for option in jax.config.values]:
        before = os.environ.get(name)
        os.environ[name] = "banana"
        try:
            runpy.run_path(config.__file__, run_name="settings")
        except ValueError as error:
            said[name] = variables._blame(error)
        del os.environ[name]
        if before is not None:
            os.environ[name] = before
    return said


if __name__ == "__main__":
    print(json.dumps(_each_option()))
