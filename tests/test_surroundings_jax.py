"""JAX's own surroundings: a platform that is not there, and what is raised in callbacks."""

from __future__ import annotations

from pathlib import Path

import pytest
import runs

CALLS_BACK = str(Path(__file__).parent / "demos" / "calls_back.py")


@pytest.mark.parametrize("through", ["pure", "io"])
def test_what_a_callback_raises_is_one_line_and_the_exception_itself(
    through: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert runs.ecotour("run", CALLS_BACK, "--through", through, "--quiet", "--out", out) == 1
    said = capfd.readouterr().err
    assert "calls_back failed: ValueError: out of paper" in said
    assert "Traceback" not in said
    assert said.count("ecotour:") == 1
    assert runs.record(out)["status"] == "failed"


def test_an_interrupt_in_a_callback_is_one(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert runs.ecotour("run", CALLS_BACK, "--interrupt", "--quiet", "--out", out) == 130
    said = capfd.readouterr().err
    assert said.strip() == "ecotour: interrupted"


@pytest.mark.parametrize("platform", ["cuda", "nonsense"])
def test_a_platform_that_is_not_there_is_named_with_those_that_are(
    platform: str, tmp_path: Path
) -> None:
    given = runs.environment(JAX_PLATFORMS=platform)
    process = runs.start("run", runs.DEMO, "--out", tmp_path / "run", env=given)
    said = process.communicate(timeout=300)[1]
    assert process.returncode == 1
    assert said.startswith(f"ecotour: JAX does not start with JAX_PLATFORMS={platform}: ")
    assert "here there is cpu" in said
    assert "set JAX_PLATFORMS=cpu" in said
    assert said.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_the_doctor_answers_where_jax_does_not_start() -> None:
    given = runs.environment(JAX_PLATFORMS="rocm")
    process = runs.start("doctor", env=given, stdout=-1)
    printed, said = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "JAX does not start with JAX_PLATFORMS=rocm: " in printed
    assert "versions" in printed
    assert said == ""
