"""Event files, read back with TensorBoard's own reader."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import faulty
import pytest

from ecotour import cli
from ecotour.sinks import extension
from ecotour.testing import Ran

READ = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
read = EventAccumulator(sys.argv[1], size_guidance={"images": 0, "scalars": 0})
read.Reload()
tags = read.Tags()
print(json.dumps({
    "scalars": {t: [[e.step, e.value] for e in read.Scalars(t)] for t in tags["scalars"]},
    "images": {
        t: [[e.step, e.width, e.height, e.encoded_image_string[:4].hex()] for e in read.Images(t)]
        for t in tags["images"]
    },
    "texts": tags["tensors"],
}))
"""


def test_scalars_images_and_the_account_are_there(
    run_demo: Callable[..., Ran], tmp_path: Path
) -> None:
    file = tmp_path / "means.py"
    file.write_text(faulty.source(""))
    ran = run_demo(file, "--steps", "4", "--log-every", "1", "--tensorboard")
    assert (ran.code, ran.error) == (0, "")
    # in a process of its own: TensorBoard's imports warn of what is none of our doing
    done = subprocess.run(
        [sys.executable, "-c", READ, str(ran.run_dir / "tensorboard")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    rows = [json.loads(x) for x in (ran.run_dir / "metrics.jsonl").read_text().splitlines()]
    expected = [[row["step"], pytest.approx(row["loss"], rel=1e-6)] for row in rows]
    assert found["scalars"]["fit/loss"] == expected
    assert [step for step, _ in found["scalars"]["fit/step_ms"]] == [2, 3, 4]
    account = {k: v[0][1] for k, v in found["scalars"].items() if k.startswith("account/")}
    assert account["account/compile_s"] == pytest.approx(
        ran.record["ledger"]["steps"]["fit"]["compile_s"], rel=1e-6
    )
    assert [image[0] for image in found["images"]["fit/mean"]] == [0, 1, 2, 3, 4]
    assert {image[3] for image in found["images"]["fit/mean"]} == {"89504e47"}  # PNG
    assert len(found["images"]["account/seconds"]) == 1
    assert set(found["texts"]) == {"run/text_summary", "verdict/text_summary"}


def test_a_bad_exhibit_costs_itself_alone(run_demo: Callable[..., Ran], tmp_path: Path) -> None:
    file = tmp_path / "means.py"
    file.write_text(faulty.source("exhibit"))
    ran = run_demo(file, "--steps", "2", "--tensorboard")
    assert ran.code == 0
    (said,) = ran.record["warnings"]
    assert said.startswith("'fit' after step 0: exhibit 'mean' is a int: return one of ")


def test_without_the_flag_nothing_is_written(run_demo: Callable[..., Ran], tmp_path: Path) -> None:
    file = tmp_path / "means.py"
    file.write_text(faulty.source(""))
    ran = run_demo(file, "--steps", "1")
    assert not (ran.run_dir / "tensorboard").exists()


def test_the_help_names_it_without_importing_it() -> None:
    program = (
        "import sys\nfrom ecotour.cli import main\n"
        "try:\n    main(['run', '--help'])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'tensorboardX', 'ecotour_tensorboard', 'jax'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "--tensorboard" in done.stdout
    assert "ecotour-tensorboard 0.1.0" in done.stdout.replace("\n", " ").replace("  ", " ")
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_sink_is_found_by_its_metadata() -> None:
    (entry,) = [entry for entry in extension.find() if entry.name == "tensorboard"]
    assert (entry.status, entry.module) == ("installed", "ecotour_tensorboard")


BAD = """
import ecotour

class Sink:
    def __call__(self, event):
        raise RuntimeError("full")
    def close(self):
        raise RuntimeError("stuck")

@ecotour.hookimpl
def ecotour_sink(run_dir):
    {body}
    return Sink()
"""


def test_a_sink_that_fails_costs_no_run(
    throwaway: Callable[..., str], run_demo: Callable[..., Ran], tmp_path: Path
) -> None:
    throwaway("bad", BAD.format(body="pass"), group="ecotour.sinks")
    file = tmp_path / "means.py"
    file.write_text(faulty.source(""))
    ran = run_demo(file, "--steps", "1", "--bad")
    assert ran.code == 0
    assert ran.record["warnings"] == ["Sink gave up: RuntimeError: full"]


@pytest.mark.parametrize("body", ["raise SystemExit(3)", "return None", "1 / 0"])
def test_a_sink_that_cannot_be_made_is_refused_in_one_line_and_leaves_nothing(
    body: str, throwaway: Callable[..., str], run_demo: Callable[..., Ran], tmp_path: Path
) -> None:
    throwaway("bad", BAD.format(body=body), group="ecotour.sinks")
    file = tmp_path / "means.py"
    file.write_text(faulty.source(""))
    ran = run_demo(file, "--bad")
    assert ran.code == 1
    assert "sink 'bad' (throwaway-bad 1.0) cannot be used: " in ran.error
    assert not ran.run_dir.exists()


def test_a_sink_named_like_a_flag_of_ours_breaks_nothing(
    throwaway: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    throwaway("steps", BAD.format(body="pass"), group="ecotour.sinks")
    with pytest.raises(SystemExit):
        cli.main(["run", "--help"])
    assert "of each named step" in capsys.readouterr().out
