"""The page of a run: whole, safe, readable without network or script, however the run ended."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic
from test_exhibit_json import every_kind

from ecotour import events
from ecotour.demo import Verdict
from ecotour.drawing import account, page, pictures, wording
from ecotour.drawing.figures import LARGEST_SVG, Picture, picture
from ecotour.drawing.html import render
from ecotour.drawing.pictures import spaced
from ecotour.drawing.report import write_report
from ecotour.exhibits import Code, Exhibit, Film, Heatmap, Images, Paths, Table
from ecotour.rundir import claim, record
from ecotour.rundir import stored_exhibits as storing
from ecotour.rundir.stored_exhibits import Stored, read_exhibits, slug
from ecotour.running.history import History
from ecotour.sinks.pictures import Pictures
from ecotour.sinks.recorder import Recorder
from ecotour.sinks.report import Report

VOID = {"meta", "br", "img", "source", "link", "hr", "input", "path", "use", "rect"}


class Page(HTMLParser):
    """Reads a page strictly: what is opened is closed, and in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "title"} & set(self.open):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def make_run(where: Path, **options: Any) -> Path:
    """A run's directory as the command line makes it, from made-up events."""
    directory = claim.RunDirectory.claim(where, "gan")
    recorder = start(directory, **options)
    recorder.record["environment"] = {"devices": ["TFRT_CPU_0"], "jax": "0.10.2"}
    sinks = [recorder, Pictures(where, pytest.fail), Report(where, recorder.record)]
    for event in synthetic.run(**options):
        for sink in sinks:
            sink(event)
    recorder.write()
    for sink in sinks:
        sink.close()
    directory.release()
    return where


def start(directory: claim.RunDirectory, **options: Any) -> Recorder:
    plan = next(e.plan for e in synthetic.run(**options) if isinstance(e, events.Started))
    return Recorder(directory, plan, ["ecotour", "run", "gan"], pytest.fail)


def read(run: Path) -> tuple[Page, str]:
    text = (run / "report.html").read_text(encoding="utf-8")
    return Page(text), text


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "gan-001", steps=600)


def test_the_page_says_what_happened(finished: Path) -> None:
    shown, _ = read(finished)
    for words in (
        "gan", "finished", "1 of 4 checks not passed", "600", "41.2 ms",
        "mnist train, embedded subset (10,000 of 60,000 examples)", "classifier score", "9.214",
        ">= 8", "✗ not passed", "before the first step", "Step 600.", "64 samples from the same",
        "The GAN between the best and the worst", "disc_loss", "2·ln 2: the discriminator",
        "ln 2: it is taken", "6.21 GFLOP", "XLA’s count", "90 MiB", "Winograd", "TFRT_CPU_0",
        "metric 'disc_loss' of 'update' is nan", "steady", "judging", "seed", "--learning-rate",
    ):  # fmt: skip
        assert words in shown.text, words


def test_the_page_needs_nothing_but_itself(finished: Path) -> None:
    shown, text = read(finished)
    for tag, attributes in shown.tags:
        assert tag not in ("script", "link", "iframe", "object", "base", "form")
        for name, value in attributes.items():
            assert not name.startswith("on")
            if name in ("src", "srcset", "href", "xlink:href", "poster"):
                assert value is not None
                assert value.startswith(("data:image/", "#")), value[:80]
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert len(text) < 1_500_000


def test_a_picture_is_for_everyone(finished: Path) -> None:
    shown, _ = read(finished)
    images = [attributes for tag, attributes in shown.tags if tag == "img"]
    assert len(images) == 5 + 1 + 1, "five moments, the last one large, the judge's"
    assert all(attributes.get("alt") for attributes in images)
    drawings = [attributes for tag, attributes in shown.tags if tag == "svg"]
    assert len(drawings) == 3
    assert all(attributes.get("aria-label") for attributes in drawings)


def test_everything_shown_lies_as_png_and_json_beside_the_page(finished: Path) -> None:
    files = {path.name for path in (finished / "exhibits").iterdir()}
    stems = {name.rpartition(".")[0] for name in files}
    assert {"metrics-update", "scores", "nearest", "digits_of_10_000_samples"} <= stems
    assert len([stem for stem in stems if stem.startswith("update-samples-")]) == 17
    for stem in stems:
        assert {f"{stem}.json", f"{stem}.png"} <= files
    for name in files:
        path = finished / "exhibits" / name
        if name.endswith(".json"):
            json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
        else:
            assert path.stat().st_size < 150_000
    assert not [name for name in files if name.endswith(".part")]


def test_the_ledgers_parts_add_up(finished: Path) -> None:
    ledger = record.read(finished)["ledger"]
    parts = account.parts(ledger)
    assert sum(part.seconds for part in parts) == pytest.approx(ledger["total_s"], rel=1e-9)
    assert {part.name: part.seconds for part in parts}["steady"] == pytest.approx(
        ledger["steps"]["update"]["loop_s"] - ledger["steps"]["update"]["first_s"]
    )
    made = page.make(record.read(finished), [], [])
    assert sum(row.percent for row in made.ledger) == pytest.approx(100)


def test_the_command_that_repeats_the_run_is_quoted_for_a_shell() -> None:
    described = {
        "demo": "gan", "seed": 3, "steps_asked": 600, "data": {"source": "tfds"},
        "config": {"batch_size": 64, "channels": [8, 16], "augment": False, "name": "a b; rm ~"},
    }  # fmt: skip
    assert shlex.split(page.repeat_command(described)) == [
        "ecotour", "run", "gan", "--steps", "600", "--seed", "3", "--data", "tfds",
        "--batch-size", "64", "--channels", "8", "16", "--no-augment", "--name", "a b; rm ~",
    ]  # fmt: skip


def test_no_name_is_ever_taken_for_html(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    run = make_run(
        tmp_path / "run", steps=40, demo=evil.replace("/", ""), names=(f"{evil}'\"&", "b")
    )
    found = record.read(run)
    found |= {
        "summary": evil, "about": evil, "warnings": [evil], "nonfinite": [evil],
        "notes": {evil: evil}, "config": {evil: evil}, "environment": {evil: [evil]},
        "checks": [{"name": evil, "value": 1, "want": evil, "passed": True}], "run_dir": evil,
    }  # fmt: skip
    for name, exhibit in evil_exhibits(evil).items():
        storing.write_json(
            run / "exhibits" / f"{slug(name)}_x.json",
            {"of": None, "name": name, "step": None, "exhibit": _document(exhibit)},
        )
    for status in ("failed", "interrupted", "running", evil):
        write_report(run, found | {"status": status, "error": evil})
        shown, text = read(run)
        assert not [tag for tag, _ in shown.tags if tag in ("script", "b:script")]
        assert evil not in text
        assert evil in shown.text
    names = [path.name for path in (run / "exhibits").iterdir()]
    assert all(re.fullmatch(r"[a-z0-9_.-]+", name) for name in names), names


def evil_exhibits(evil: str) -> dict[str, Exhibit]:
    return {
        f"table {evil}": Table([evil], [[evil]], evil),
        f"code {evil}": Code(evil, evil, language=evil),
        f"film {evil}": Film(synthetic.digits(3), evil),
        f"images {evil}": Images(synthetic.digits(3), evil, labels=[evil] * 3),
    }


def _document(exhibit: Exhibit) -> Any:
    from ecotour.rundir.exhibit_json import to_json

    return to_json(exhibit)


def test_every_kind_of_exhibit_has_a_place(tmp_path: Path) -> None:
    directory = claim.RunDirectory.claim(tmp_path / "run", "zoo")
    recorder = start(directory)
    sink = Pictures(directory.path, pytest.fail)
    kinds = every_kind()
    for event in synthetic.run(4):
        recorder(event)
        if type(event).__name__ == "Viewed":
            sink(type(event)("update", event.step, kinds))  # type: ignore[union-attr, call-arg]
    write_report(directory.path, recorder.record)
    recorder.close()
    directory.release()
    shown, _ = read(directory.path)
    for name, exhibit in kinds.items():
        assert exhibit.caption in shown.text or exhibit.caption in _labels(shown), name
    assert list((directory.path / "exhibits").glob("update-film-*.gif"))


def _labels(shown: Page) -> str:
    return " ".join(str(a.get("alt") or a.get("aria-label") or "") for _, a in shown.tags)


@pytest.mark.parametrize("status", ["failed", "interrupted"])
def test_a_run_that_broke_off_is_shown_as_far_as_it_came(tmp_path: Path, status: Any) -> None:
    run = make_run(tmp_path / "my run", steps=60, status=status, until=0.5)
    shown, _ = read(run)
    assert "30 of 60" in shown.text
    assert "no verdict" in shown.text
    if status == "failed":
        assert "The run failed. gan failed: ValueError: made up" in shown.text
    else:
        assert f"ecotour resume {shlex.quote(str(run))}" in shown.text


def test_a_run_without_a_step_still_has_a_page(tmp_path: Path) -> None:
    directory = claim.RunDirectory.claim(tmp_path / "run", "gan")
    recorder = start(directory)
    recorder(next(iter(synthetic.run(10))))
    directory.release()
    assert write_report(directory.path, record.read(directory.path)) == []
    shown, _ = read(directory.path)
    assert "The run was not over when this page was written" in shown.text
    assert "0 of 10" in shown.text
    write_report(directory.path, {})
    assert "unnamed run" in read(directory.path)[0].text


def test_damage_is_named_and_the_rest_is_shown(finished: Path, tmp_path: Path) -> None:
    run = shutil.copytree(finished, tmp_path / "run")
    (run / "exhibits" / "scores.json").write_bytes(b'{"of": null, "na')
    (run / "exhibits" / "nearest.json").write_text('{"of":null,"name":"n","step":null,"exhibit":3}')
    rows = (run / "metrics.jsonl").read_bytes().split(b"\n")
    rows[3] = b"\x00\xff"
    (run / "metrics.jsonl").write_bytes(b"\n".join(rows) + b'{"step": 9')
    damaged = write_report(run, record.read(run))
    assert len(damaged) == 3
    shown, _ = read(run)
    assert "scores.json" in shown.text
    assert "line 4 is damaged" in shown.text
    assert "digits of 10 000 samples" in shown.text or "digits of 10,000 samples" in shown.text


def test_pictures_and_page_come_back_without_jax(finished: Path, tmp_path: Path) -> None:
    run = shutil.copytree(finished, tmp_path / "moved")
    before = (run / "exhibits" / "update-samples-00000600.png").read_bytes()
    for path in {run / "report.html", *run.glob("exhibits/*.png"), *run.glob("exhibits/metrics-*")}:
        path.unlink()
    script = (
        "import sys; sys.modules.update(jax=None, tensorflow=None, haiku=None)\n"
        "from pathlib import Path\n"
        "from ecotour.rundir import record; from ecotour.drawing import report\n"
        "run = Path(sys.argv[1]); report.write_report(run, record.read(run))\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, str(run)], capture_output=True, text=True,
        check=False, env=os.environ | {"MPLBACKEND": "nonsense", "DISPLAY": ":99"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (run / "exhibits" / "update-samples-00000600.png").read_bytes() == before
    assert (run / "exhibits" / "metrics-update.png").exists()
    assert "Step 600." in read(run)[0].text


def test_steps_that_share_their_metrics_are_compared(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", steps=20, names=("adam", "sgd"))
    assert (run / "exhibits" / "metrics-across-steps.png").exists()
    assert (run / "exhibits" / "metrics-adam.png").exists()
    shown, _ = read(run)
    assert "samples of adam" in shown.text
    assert len([tag for tag, _ in shown.tags if tag == "svg"]) == 2 + 1, "compared, not repeated"


def test_names_that_differ_only_in_signs_get_two_files(tmp_path: Path) -> None:
    (tmp_path / "exhibits").mkdir()
    sink = Pictures(tmp_path, pytest.fail)
    for name in ("a b", "a-b", "a/b", "../../b", "", "x" * 500, "CON", "ü"):
        sink._store("of", name, 7, 0, Code(name, name))
    damaged: list[str] = []
    stored = list(read_exhibits(tmp_path, damaged))
    assert damaged == []
    assert {one.name for one in stored} == {
        "a b", "a-b", "a/b", "../../b", "", "x" * 500, "CON", "ü"
    }  # fmt: skip
    assert all(one.path.parent == tmp_path / "exhibits" for one in stored)
    assert all(len(one.path.name) < 120 for one in stored)


def test_what_is_not_finite_is_never_the_best(tmp_path: Path) -> None:
    directory = claim.RunDirectory.claim(tmp_path / "run", "gan")
    recorder = start(directory)
    lower = {"loss": True, "score": False, "never": True, "absent": True}
    (started, *_) = synthetic.run(5)
    assert isinstance(started, events.Started)
    step = dataclasses.replace(started.program.steps["update"], lower_is_better=lower)
    program = dataclasses.replace(started.program, steps={"update": step})
    recorder(events.Started(started.plan, program, {"update": 5}))
    recorder(events.StepBegun("update", 0, 5, 0.1))
    inf, nan = math.inf, math.nan
    for at, (loss, score) in enumerate([(3, 1), (-inf, 2), (2, inf), (nan, nan), (2, 0)], start=1):
        metrics = {"loss": loss, "score": score, "never": nan, "unjudged": 1.0}
        recorder(events.Reported("update", at, 5, metrics, 0.1, None))
    best = {"loss": {"value": 2, "step": 3}, "score": {"value": 2, "step": 2}}
    assert recorder.record["best"] == {"update": best}
    history = record_rows(directory.path)
    assert history.best("loss", lower=True) == (3, 2.0)
    assert history.best("score", lower=False) == (2, 2.0)
    assert history.best("never", lower=True) is None
    write_report(directory.path, recorder.record)
    shown, text = read(directory.path)
    assert "loss 2 3" in shown.text
    (curve,) = re.findall(r'<svg[^>]*aria-label="score of update".*?</svg>', text, re.DOTALL)
    lines = re.findall(r'<path d="(M[^"]*)" clip-path[^>]*stroke: var\(--series-0\)', curve)
    assert lines[0].count("M") == 2, "a line, a gap, and the value after it"
    recorder.close()
    directory.release()


def record_rows(run: Path) -> History:
    from ecotour.rundir.metric_rows import read_history

    return read_history(run)[0]["update"]


def test_one_bad_exhibit_costs_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import jax.numpy as jnp

    donated = jnp.zeros((2, 8, 8))
    donated.delete()
    run, warned = make_run(tmp_path / "run", steps=4), []
    sink = Pictures(run, warned.append)
    shown: dict[str, Any] = {
        "flat": Images([0.0, 1.0], "No picture."),
        "three": 3,
        "donated": Images(donated, "Gone."),
        "undrawable": Code("text", "A library fails on it."),
        "good": Table(["a"], [[1]], "As it should be."),
    }
    draw = pictures.drawing.png

    def failing(exhibit: Exhibit, *width: float) -> bytes:
        if exhibit.caption == "A library fails on it.":
            raise OverflowError("too much")
        return draw(exhibit, *width)

    monkeypatch.setattr(pictures.drawing, "png", failing)
    for step in (3, 4):
        sink(events.Viewed("update", step, shown))
    sink(events.Judged(Verdict((), shown), 0.1))
    assert [line.partition(":")[0] for line in warned] == (
        ["'update' after step 3"] * 3 + ["the verdict"] * 3
    )
    assert "exhibit 'flat' (Images): pixels have shape (2,), wanted [N, H, W]" in warned[0]
    assert "exhibit 'three' is a int: return one of Images" in warned[1]
    assert "exhibit 'donated': RuntimeError: Array has been deleted" in warned[2]
    warned.clear()
    sink(events.Ended("finished", {}))
    assert warned == [
        f"{where}: exhibit 'undrawable': OverflowError: too much: it is not drawn"
        for where in ("the verdict", "'update' after step 4")
    ]
    names = {path.name for path in (run / "exhibits").iterdir()}
    assert {"good.png", "update-good-00000004.png", "undrawable.json"} <= names
    assert "undrawable.png" not in names
    write_report(run, record.read(run))
    shown_page, _ = read(run)
    assert "'update' after step 4: exhibit 'undrawable'" in shown_page.text


def test_a_page_shows_what_cannot_be_drawn_as_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "run", steps=4)

    def fails(*_: object) -> str:
        raise MemoryError("too large")

    monkeypatch.setattr(pictures.drawing, "svg", fails)
    monkeypatch.setattr(page, "svg_picture", lambda *_: Picture("drawn elsewhere", svg="<svg/>"))
    write_report(run, record.read(run))
    shown, _ = read(run)
    assert "It cannot be drawn: MemoryError: too large" in shown.text
    assert "classifier score" in shown.text


def test_the_order_is_the_demos_own(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", steps=4, names=("zeta", "alpha"))
    for file in (run / "exhibits").glob("*.json"):
        file.unlink()
    sink = Pictures(run, pytest.fail)
    names = ["zoo", "middle", "ant"]
    for of in ("zeta", "alpha"):
        for step in (2, 4):
            # the first appears but later, and takes its place before the others all the same
            seen = names if step == 4 else names[1:]
            sink(events.Viewed(of, step, {name: Code(name, name) for name in seen}))
    sink(events.Judged(Verdict((), {name: Code(name, name) for name in names}), 0.1))
    stored = list(read_exhibits(run, []))
    order = [(one.of, one.name) for one in stored if one.step in (4, None)]
    assert order == [(of, name) for of in (None, "zeta", "alpha") for name in names]
    write_report(run, record.read(run))
    shown, _ = read(run)
    judged = shown.text.partition("What the verdict stands on")[2]
    assert judged.index("zoo") < judged.index("middle") < judged.index("ant")


@pytest.mark.parametrize(
    ("exhibit", "wide"),
    [
        (Heatmap(np.eye(3, 6), ""), False),
        (Heatmap(np.eye(3, 7), ""), True),
        (Table(["a", "b"], [["one", 2]], ""), False),
        (Table(["surface", "optimizer", "best rate", "steps to arrive", "gradients to arrive"],
               [["rosenbrock", "momentum", 0.004642, 338, 338]], ""), True),
        (Code("text", ""), True),
    ],
)  # fmt: skip
def test_what_is_wide_takes_the_whole_width(exhibit: Exhibit, wide: bool) -> None:
    shown = picture(Stored(Path("x.json"), None, "x", None, exhibit))
    assert (shown.wide, shown.missing) == (wide, "")
    made = page.make({}, [Stored(Path("x.json"), None, "x", None, exhibit)], [])
    assert ('<div class="wide"><h3>x</h3>' in render("report.html.j2", page=made)) == wide


def test_a_large_drawing_stays_a_drawing_on_the_page() -> None:
    x = np.linspace(-2, 2, 500)
    heights = (1 - x[None]) ** 2 + 100 * (x[:, None] - x[None] ** 2) ** 2
    valley = Paths(x, x, heights, {"a path": [[0, 0], [1, 1]]}, "A valley.")
    for small in (False, True):
        shown = picture(Stored(Path("x.json"), None, "x", None, valley), small=small)
        assert shown.source == ""
        assert len(shown.svg) < LARGEST_SVG
        assert "a path" in shown.svg


def test_moments_are_evenly_spaced() -> None:
    assert spaced(list(range(17)), 6) == [0, 3, 6, 10, 13, 16]
    assert spaced([1, 2], 6) == [1, 2]
    assert spaced([], 6) == []


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        (wording.number(None), "–"), (wording.number(float("nan")), "–"),
        (wording.number(True), "yes"), (wording.number(12345), "12,345"),
        (wording.number(0.000123456), "0.000123"), (wording.number(9.21349), "9.213"),
        (wording.number(1e-9), "1e-09"), (wording.number("text"), "text"),
        (wording.number(10.0), "10"), (wording.number(float("-inf")), "-∞"),
        (wording.duration(0), "0 s"), (wording.duration(5e-5), "50 µs"),
        (wording.duration(0.0412), "41.2 ms"), (wording.duration(59.97), "1 min 00 s"),
        (wording.duration(3725), "1 h 02 min"), (wording.duration(None), "unknown"),
        (wording.amount(6.21e9, "FLOP"), "6.21 GFLOP"), (wording.amount(-1, "FLOP"), "unknown"),
        (wording.size(94_371_840), "90 MiB"), (wording.size(None), "unknown"),
        (wording.share(0.0004, 1), "< 0.1%"), (wording.share(1, 0), "–"),
    ],
)  # fmt: skip
def test_numbers_are_worded(shown: str, wanted: str) -> None:
    assert shown == wanted
