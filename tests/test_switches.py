"""A wrong variable of JAX or XLA is named, and no demo is blamed for it."""

from __future__ import annotations

import subprocess
import sys

import lines
import pytest
import runs

WRONG = {
    "JAX_ENABLE_X64": "banana",
    "JAX_DEBUG_NANS": "2",
    "JAX_DEFAULT_MATMUL_PRECISION": "banana",
    "XLA_FLAGS": "--nonsense",
}


@pytest.mark.parametrize("variable", WRONG)
@pytest.mark.parametrize("command", ["show", "doctor"])
def test_the_variable_and_its_value_are_named(variable: str, command: str) -> None:
    value = WRONG[variable]
    words = ["show", str(lines.FILE)] if command == "show" else ["doctor"]
    done = subprocess.run(
        [sys.executable, "-m", "ecotour", *words], capture_output=True, text=True, check=False,
        env=runs.environment(**{variable: value}),
    )  # fmt: skip
    assert done.returncode == 1
    told = done.stderr if command == "show" else done.stdout
    assert f"{variable}={value}" in told
    assert "cannot be imported" not in told
    if command == "show":
        assert told.count("\n") == 1
