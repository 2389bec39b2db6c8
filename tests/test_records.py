"""From a run to a record: small, whole, without a trace of this machine, and never by force."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path

import pytest
from lines import copy_to, make_run
from lines import keep as keep_of

from ecotour import cli
from ecotour.errors import PluginError
from ecotour.trust import budget, child, records, sources
from ecotour.trust.keep import scrub, scrub_svg
from ecotour.trust.records import Shown


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; the demo's file lies beside it."""
    place = tmp_path_factory.mktemp("runs")
    return make_run(place / "line", file=copy_to(place))


def file_of(run: Path) -> Path:
    return run.parent / "line.py"


def keep(run: Path, directory: Path) -> Path:
    return keep_of(run, directory, file_of(run))


def test_a_run_is_kept(run: Path, tmp_path: Path) -> None:
    kept = records.read(keep(run, tmp_path / "records"))
    document = kept.document
    assert document["demo"] == "line"
    assert document["about"] == "A line through noisy points"
    assert document["checks"][0]["passed"]
    assert [flag["name"] for flag in document["flags"]] == ["--learning-rate", "--batch-size"]
    assert document["shapes"] == {"fit": {"": "float32[2]"}}
    assert {one.role for one in kept.shown} == {"metrics", "view"}
    assert kept.source() == file_of(run)
    assert [row["step"] for row in kept.rows()][:3] == [1, 2, 3]
    assert kept.rows()[-1]["step"] == 200
    assert "elapsed_s" not in kept.rows()[0]
    assert sorted(kept.path.iterdir()) == sorted(kept.files)
    assert sum(file.stat().st_size for file in kept.files) < 100_000


def test_nothing_of_this_machine_is_in_it(run: Path, tmp_path: Path) -> None:
    kept = records.read(keep(run, tmp_path / "records"))
    text = "".join(file.read_text() for file in kept.files if file.suffix != ".png")
    for secret in (str(run), str(Path.home()), str(run.parent), socket.gethostname()):
        assert len(secret) < 3 or (f"{secret}/" not in text and f'"{secret}"' not in text)
    for key in ("run_dir", "owner", "command_line", "parts"):
        assert key not in kept.document
    assert kept.document["command"].startswith("ecotour run line.py ")


def test_the_same_run_gives_the_same_bytes(run: Path, tmp_path: Path) -> None:
    first, second = keep(run, tmp_path / "a"), keep(run, tmp_path / "b")
    for file in records.read(first).files:
        other = (second / file.name).read_bytes()
        assert file.read_bytes().replace(b"/a/", b"/b/") == other.replace(b"/a/", b"/b/"), file


def test_a_record_is_replaced_by_one_of_the_same_demo_only(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "records"
    kept = keep(run, directory)
    (kept / "left-over.svg").write_text("<svg/>")
    keep(run, directory)
    assert not (kept / "left-over.svg").exists()
    assert [p.name for p in directory.iterdir()] == ["line"]
    words = ["record", str(file_of(run)), "--from", str(run), "--records", str(directory)]
    document = json.loads((kept / "record.json").read_text())
    (kept / "record.json").write_text(json.dumps(document | {"demo": "other"}))
    assert cli.main(words) == 1
    assert "is a record of 'other'" in capsys.readouterr().err
    shutil.rmtree(kept)
    kept.mkdir()
    (kept / "thesis.txt").write_text("mine")
    assert cli.main(words) == 1
    assert "holds no record" in capsys.readouterr().err
    assert (kept / "thesis.txt").read_text() == "mine"


def test_what_is_no_finished_run_of_this_source_is_refused(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    document = json.loads((copy / "run.json").read_text())
    words = [
        "record",
        str(file_of(run)),
        "--from",
        str(copy),
        "--records",
        str(tmp_path / "records"),
    ]
    for change, message in (
        ({"status": "interrupted"}, "only a finished run can be kept"),
        ({"demo": "gan"}, "is a run of 'gan', not of 'line'"),
        ({"source_hash": "0" * 64}, "another source than the one that is installed"),
    ):
        (copy / "run.json").write_text(json.dumps(document | change))
        assert cli.main(words) == 1
        assert message in capsys.readouterr().err
        assert not (tmp_path / "records" / "line").exists()
    assert cli.main([*words, "--steps", "3"]) == 2
    assert "drop the flags" in capsys.readouterr().err


def test_recording_runs_in_a_process_of_its_own(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = [
        "record",
        str(copy_to(tmp_path / "demo")),
        "--records",
        str(tmp_path),
        "--steps",
        "3",
        "--json",
    ]
    assert cli.main([*words, "--learning-rate", "0.2"]) == 0
    said = json.loads(capfd.readouterr().out)
    kept = records.read(tmp_path / "line")
    assert said["record"] == str(kept.path)
    assert kept.document["totals"] == {"fit": 3}
    assert kept.document["config"]["learning_rate"] == 0.2


def test_a_run_over_its_budget_is_ended(tmp_path: Path) -> None:
    file = copy_to(tmp_path)
    with pytest.raises(child.BudgetError, match="longer than 10 ms: allow more with --time-limit"):
        child.run([str(file)], tmp_path / "a", seconds=0.01, megabytes=8000)
    with pytest.raises(child.BudgetError, match="more than 1 MiB: allow more"):
        child.run([str(file)], tmp_path / "b", seconds=60, megabytes=1)
    assert not [p for p in tmp_path.glob("*/run.json") if b"finished" in p.read_bytes()]


def test_what_a_run_says_as_it_fails_is_passed_on(tmp_path: Path) -> None:
    from ecotour.errors import UsageError

    file = copy_to(tmp_path)
    with pytest.raises(UsageError, match="--batch-size"):
        child.run(
            [str(file), "--batch-size", "0"],
            tmp_path / "a",
            seconds=60,
            megabytes=8000,
        )


@pytest.mark.parametrize(
    ("allowed", "left", "dropped"),
    [
        (1100, ["curve.svg", "early.svg", "last.svg", "verdict.svg"], []),
        (900, ["curve.svg", "last.svg", "verdict.svg"], ["view after step 1"]),
        (500, ["curve.svg", "last.svg", "verdict.svg"], ["view after step 1"]),
        (450, ["last.svg", "verdict.svg"], ["view after step 1", "the curve of loss"]),
        (250, ["last.svg", "verdict.png"], ["view after step 1", "the curve of loss"]),
    ],
)
def test_what_says_least_is_left_out_first(
    allowed: int, left: list[str], dropped: list[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(budget, "BUDGET", allowed)
    monkeypatch.setattr(budget, "ROOM", 0)
    shown = [
        Shown("view", "view", "", of="a", step=1, file="early.svg"),
        Shown("view", "view", "", of="a", step=2, file="last.svg"),
        Shown("loss", "metrics", "", of="a", file="curve.svg"),
        Shown("result", "verdict", "", file="verdict.svg"),
    ]
    sizes = {"early": 150, "last": 150, "curve": 100, "verdict": 600}
    for one in shown:
        (tmp_path / str(one.file)).write_bytes(b"x" * sizes[Path(str(one.file)).stem])
    smaller = {("verdict", ".svg"): b"x" * 210, ("verdict", ".png"): b"x" * 100}
    found, said = budget.fit(tmp_path, shown, lambda *asked: smaller.get(asked, b"x" * 999))
    assert said == dropped
    assert sorted(str(one.file) for one in found) == left
    assert sorted(path.name for path in tmp_path.iterdir()) == left


def test_pixels_in_a_drawing_stay_as_they_are() -> None:
    pixels = '"data:image/png;base64,ab/cd/ef\n/gh/ij"'
    text = f"<image href={pixels}/><text>/home/me/a.py</text>"
    assert scrub_svg(text) == f"<image href={pixels}/><text>…/a.py</text>"


def test_a_demo_elsewhere_does_not_tell_where_that_is() -> None:
    from ecotour.trust.keep import _beside

    assert _beside(Path("/home/me/line.py"), Path("/srv/site/records/.line.part")) == "line.py"
    beside = _beside(Path("/srv/site/line.py"), Path("/srv/site/records/.line.part"))
    assert beside == "../../line.py"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("in /home/me/a.py line 3", "in …/a.py line 3"),
        ('loc("/home/me/x/y.py":3)', 'loc("…/y.py":3)'),
        ("C:\\Users\\me\\a.py", "…/a.py"),
        ("images/s and ms/step/seed", "images/s and ms/step/seed"),
        ("https://example.org/a/b", "https://example.org/a/b"),
        ("<g></g></svg> a / b", "<g></g></svg> a / b"),
    ],
)
def test_paths_are_cut_down_and_nothing_else(text: str, clean: str) -> None:
    assert scrub(text) == clean
    assert scrub({"a": [text, 1.5, None]}) == {"a": [clean, 1.5, None]}


def test_a_fingerprint_is_blind_to_prose_and_to_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "demo.py"

    def fingerprint(text: str) -> str:
        file.write_text(text)
        return sources.fingerprint(file)

    code = 'def f(x):\n    """Doc."""\n    return x * 2  # twice\n'
    plain = fingerprint(code)
    assert plain == fingerprint("# %% [markdown]\n# Prose.\n\n" + code)
    assert plain == fingerprint('def f(x):\n    """Other words."""\n    return x * 2\n')
    assert plain != fingerprint(code.replace("2", "3"))
    assert plain != fingerprint(code.replace("return", "yield"))
    text = 's = "# not a comment"\n'
    assert fingerprint(text) != fingerprint('s = "# changed"\n')
    with pytest.raises(PluginError, match="cannot be read as Python"):
        fingerprint("x = (")


def test_all_of_a_package_counts_and_none_of_it_is_imported() -> None:
    import sys

    before = set(sys.modules)
    file = sources.module_file("ecotour_gan.demo")
    found = sources.fingerprints(file, "ecotour_gan.demo")
    assert {"ecotour_gan/demo.py", "ecotour_gan/verdict.py"} <= set(found)
    assert all(len(value) == 64 for value in found.values())
    assert not {name for name in set(sys.modules) - before if name.startswith("ecotour_")}
    with pytest.raises(PluginError, match=r"no source of module 'ecotour_nothing\.demo'"):
        sources.module_file("ecotour_nothing.demo")
