"""A demo that does something else than recorded is found out, with page, quantity and values."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from lines import copy_to, keep, make_run

from ecotour import cli
from ecotour.trust import drift, records


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with the demo, a record of it, and a page that shows it."""
    docs = tmp_path_factory.mktemp("site") / "docs"
    copy_to(docs)
    (docs / "page.md").write_text("# Page\n\n```{ecotour-demo} line\n```\n")
    (docs / "other.rst").write_text(".. ecotour-demo:: lines\n")
    run = make_run(docs.parent / "run", "--steps", "20", file=docs / "line.py")
    keep(run, docs / "records", file=docs / "line.py")
    return docs


@pytest.fixture
def docs(made: Path, tmp_path: Path) -> Path:
    """A copy of it, to be spoiled."""
    return Path(shutil.copytree(made, tmp_path / "docs"))


def compare(docs: Path, *words: str) -> int:
    return cli.main(["drift", "--records", str(docs / "records"), *words])


def change(docs: Path, old: str, new: str) -> None:
    file = docs / "line.py"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_what_was_not_changed_has_not_drifted(
    docs: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    change(docs, '"""A line through noisy points, by gradient descent."""', '"""Other words."""')
    assert compare(docs) == 0
    said = capfd.readouterr().out
    assert said.startswith("line: as recorded on 20")
    assert "page.md" in said
    assert "other.rst" not in said


def test_a_changed_number_is_named_with_its_page_and_values(
    docs: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    change(docs, "SLOPE, INTERCEPT, NOISE = 2.0", "SLOPE, INTERCEPT, NOISE = 2.5")
    assert compare(docs, "--quick") == 1
    said = capfd.readouterr().out
    assert "page.md" in said
    assert "source line.py: recorded " in said
    first = next(line for line in said.splitlines() if "fit.loss at step" in line)
    old, new = (float(part.split(",")[0].split()[0]) for part in
                (first.split("recorded ")[1], first.split("now ")[1]))  # fmt: skip
    assert old == pytest.approx(records.read(docs / "records" / "line").rows()[0]["loss"], 1e-5)
    assert new != old
    assert "look at the code" in said
    assert "ecotour record line" in said


def test_flags_shapes_and_sources_need_no_run(
    docs: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    change(docs, "flag(0.1, ", "flag(0.2, ")
    change(docs, "jax.random.normal(key, (2,))", "jax.random.normal(key, (3,))[:2][None][0]")
    assert compare(docs, "--sources", "--json") == 1
    found = json.loads(capfd.readouterr().out)["records"][0]["differences"]
    quantities = {one["quantity"]: (one["old"], one["new"]) for one in found}
    assert quantities["default of --learning-rate"] == ("0.1", "0.2")
    assert set(quantities) == {"source line.py", "default of --learning-rate"}
    change(docs, "jax.random.normal(key, (3,))[:2][None][0]", "jax.random.normal(key, (1, 2))")
    assert compare(docs, "--sources") == 1
    assert "shape of fit : recorded float32[2], now float32[1,2]" in capfd.readouterr().out


def test_a_demo_that_no_longer_runs_has_drifted(
    docs: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    change(docs, "    slope, intercept = line\n", "    slope, intercept, _ = line\n")
    assert compare(docs, "--quick") == 1
    assert "the run: recorded finished, now " in capfd.readouterr().out


def test_versions_stand_side_by_side(docs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = docs / "records" / "line" / "record.json"
    document = json.loads(file.read_text())
    document["environment"] |= {"jax": "0.0.1", "gone": "1"}
    document["sources"]["line.py"] = "0" * 64
    file.write_text(json.dumps(document))
    assert compare(docs, "--sources") == 1
    said = capfd.readouterr().out
    assert "jax: 0.0.1 → " in said
    assert "gone: 1 → –" in said


def test_metrics_and_checks_are_compared_within_tolerances(docs: Path) -> None:
    old = records.read(docs / "records" / "line")
    run = docs.parent / "again"
    run.mkdir()
    rows = old.rows()
    changed = [row | {"loss": row["loss"] * (1.04 if row["step"] > 10 else 1.0005)} for row in rows]
    checks = [check | {"value": check["value"] * 1.1} for check in old.document["checks"]]
    document = dict(old.document) | {"checks": checks, "schema": 1, "command": []}

    def differences() -> list[str]:
        (run / "metrics.jsonl").write_text("\n".join(json.dumps(row) for row in changed) + "\n")
        (run / "run.json").write_text(json.dumps(document))
        found = drift.of_run(old, run, whole=True)
        return [str(one) for one in found if not one.quantity.startswith("exhibit")]

    assert differences() == []
    changed[4] |= {"loss": rows[4]["loss"] * 1.002}
    assert len(differences()) == 1
    assert differences()[0].startswith("fit.loss at step 5: recorded ")
    changed[4] |= {"loss": None}
    assert "now –" in differences()[0]
    changed[4] = rows[4] | {"extra": 1.0}
    assert differences() == ["metric fit.extra: recorded none, now there"]
    changed[4] = rows[4]
    document["checks"] = [
        checks[0] | {"passed": not checks[0]["passed"], "value": 9.0, "want": "<= 1"},
        checks[1],
    ]
    assert len(differences()) == 3
    document["checks"] = checks[:1]
    assert len(differences()) == 1
    document["checks"] = checks
    document["totals"] = {"fit": 21}
    assert differences() == ["steps of fit: recorded 20, now 21"]


@pytest.mark.parametrize("name", ["steps per second", "step_ms", "fused_speedup", "guard cost",
                                  "seconds to 90%", "price_of_python"])  # fmt: skip
def test_what_is_named_after_the_clock_is_never_compared(name: str) -> None:
    assert drift.is_timing(name)


@pytest.mark.parametrize("name", ["gen_loss", "digits covered", "classifier score", "mean return",
                                  "MNIST-FD", "sometimes", "accuracy", "compiles"])  # fmt: skip
def test_other_names_are_compared(name: str) -> None:
    assert not drift.is_timing(name)


def test_no_record_and_unknown_record(docs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert compare(docs, "lime") == 2
    assert "did you mean line?" in capfd.readouterr().err
    shutil.rmtree(docs / "records")
    assert compare(docs) == 1
    assert "make one with `ecotour record DEMO`" in capfd.readouterr().err
