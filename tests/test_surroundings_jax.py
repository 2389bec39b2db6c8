"""JAX's own surroundings: a platform that is not there, and steps that are not compiled."""

from __future__ import annotations

from pathlib import Path

import pytest
import runs

from ecotour.drawing import page


@pytest.mark.parametrize(
    ("variable", "platform"), [("JAX_PLATFORMS", "cuda"), ("JAX_PLATFORM_NAME", "nonsense")]
)
def test_a_platform_that_is_not_there_is_named_with_those_that_are(
    variable: str, platform: str, tmp_path: Path
) -> None:
    given = runs.environment(**{variable: platform})
    process = runs.start("run", runs.DEMO, "--out", tmp_path / "run", env=given)
    said = process.communicate(timeout=300)[1]
    assert process.returncode == 1
    assert said.startswith(f"ecotour: JAX does not start with {variable}={platform}: ")
    assert "here there is cpu" in said
    assert f"set {variable}=cpu" in said
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


def test_without_compilation_a_step_runs_as_python_and_the_ledger_says_so(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    demo = tmp_path / "shows.py"
    text = Path(runs.DEMO).read_text(encoding="utf-8")
    shows = "noise = 0.01"
    assert shows in text
    demo.write_text(text.replace(shows, "print('loss', float(value)); " + shows), encoding="utf-8")
    out = tmp_path / "run"
    assert runs.ecotour("run", demo, "--steps", 2, "--eager", "--out", out) == 0
    said = capfd.readouterr()
    assert said.out.count("loss ") == 4
    assert "first: not compiled" in said.err
    steps = runs.record(out)["ledger"]["steps"]
    assert [costs["compiled"] for costs in steps.values()] == [False, False]
    assert [costs["compile_s"] for costs in steps.values()] == [None, None]
    assert runs.ecotour("run", runs.DEMO, "--steps", 2, "--quiet", "--out", tmp_path / "two") == 0
    for eager, compiled in zip(runs.rows(out), runs.rows(tmp_path / "two"), strict=True):
        assert eager["loss"] == pytest.approx(compiled["loss"], rel=1e-5)
    assert runs.ecotour("resume", out, "--steps", 4) == 0
    assert "first: not compiled" in capfd.readouterr().err, "it goes on as it began"


def test_jax_s_own_switch_does_the_same(tmp_path: Path) -> None:
    given = runs.environment(JAX_DISABLE_JIT="1")
    out = tmp_path / "run"
    process = runs.start("run", runs.DEMO, "--steps", 2, "--out", out, env=given)
    said = process.communicate(timeout=300)[1]
    assert process.returncode == 0, said
    assert "not compiled" in said
    record = runs.record(out)
    assert record["ledger"]["steps"]["first"]["compiled"] is False
    assert "--eager" in page.repeat_command(record)
