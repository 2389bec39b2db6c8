"""The extension on small sites that know nothing of ours, built by real builds in subprocesses."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ecotour.drawing import look
from ecotour.sphinx import style
from ecotour.trust import records
from ecotour.trust.records import KIND, SCHEMA

CHECK = {"name": "a <b> check", "value": 0.5, "want": "<= 1", "passed": True}
TRUTH = {"name": "a truth", "value": True, "want": "== 1", "passed": True}
SVG = '<svg viewBox="0 0 2 1" role="img" aria-label="c"><path style="stroke: var(--ink)"/></svg>'


def make_record(directory: Path, module: str = "ecotour_gan.demo", **changes: object) -> Path:
    """A record as `ecotour record` writes it, with one exhibit of each kind."""
    from PIL import Image

    directory.mkdir(parents=True)
    exhibits = [
        {"name": "loss", "role": "metrics", "caption": "A loss.", "of": "update", "file": "l.svg"},
        {"name": "samples", "role": "view", "caption": "Early.", "of": "update", "step": 1,
         "file": "early.png", "pixelated": True},
        {"name": "samples", "role": "view", "caption": "Late.", "of": "update", "step": 2000,
         "file": "late.png", "pixelated": True},
        {"name": "scores", "role": "verdict", "caption": "A table.",
         "table": {"columns": ["who", "score"], "rows": [["<us>", 1234.5], ["them", None]]}},
        {"name": "program", "role": "verdict", "caption": "A text.", "code": "<a> %%% b",
         "language": "python"},
        {"name": "odd", "role": "verdict", "caption": "Odd.", "code": "x", "language": "klingon"},
    ]  # fmt: skip
    document = {
        "schema": SCHEMA, "kind": KIND, "demo": "gan", "module": module, "about": "It draws <x>",
        "teaches": "Much.", "summary": "It went & went.", "recorded": "2026-01-02",
        "distribution": "ecotour-gan 0.1.0", "seed": 3, "command": "ecotour run gan --seed 3",
        "checks": [CHECK, TRUTH], "exhibits": exhibits, "notes": {"convolutions": "fast"},
        "datasets": {"train": {"description": "mnist train, embedded subset"}},
        "environment": {"jax": "9.9", "devices": ["cpu:0"]},
        "flags": [{"name": "--batch-size", "kind": "int", "default": 64, "help": "images",
                   "bounds": {"at_least": 1}}],
        "ledger": {"import_s": 1.0, "total_s": 4.0, "steps": {
            "update": {"compile_s": 2.0, "cache_hit": True, "compiles": 3, "measured": 9,
                       "steady_ms": {"p50": 5.0, "p95": 6.0}},
            "plain": {"compile_s": None, "compiles": 0, "first_s": 4.0, "measured": 0}}},
    }  # fmt: skip
    (directory / "record.json").write_text(json.dumps(document | changes))
    (directory / "metrics.jsonl").write_text('{"step": 1, "of": "update", "loss": 1.0}\n')
    (directory / "l.svg").write_text(SVG)
    for name in ("early.png", "late.png"):
        Image.new("L", (8, 8)).save(directory / name)
    return directory


def build(site: Path, *options: str, code: int = 0) -> str:
    """Build ``site`` as HTML with warnings as errors; what Sphinx said."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-d", str(site / "doctrees")]
    done = subprocess.run(
        [*command, *options, str(site), str(site / "html")], capture_output=True, text=True
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site in reStructuredText with Sphinx's own theme, and one page in Markdown."""
    made = tmp_path / "site"
    make_record(made / "kept" / "gan")
    (made / "conf.py").write_text(
        'extensions = ["ecotour.sphinx", "myst_parser"]\n'
        'ecotour_records = "kept"\necotour_source_url = "https://example.org/{path}"\n'
        'exclude_patterns = ["kept"]\n'
    )
    (made / "index.rst").write_text(
        "Theirs\n======\n\n.. toctree::\n\n   more\n\n.. ecotour-gallery::\n\n   gan  more\n\n"
        "A part\n------\n\n.. ecotour-demo:: gan\n"
    )
    (made / "more.md").write_text(
        "# More\n\nBefore.\n\n```{ecotour-demo} gan\n:parts: source\n:section: Losses\n```\n\n"
        "```{ecotour-demo} gan\n:parts: views\n:show: samples\n```\n"
    )
    return made


def text_of(page: Path) -> str:
    """What a reader reads."""
    import html

    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.read_text())))


def test_a_strangers_site_shows_source_and_run(site: Path) -> None:
    build(site, "-j", "2")
    page = (site / "html" / "index.html").read_text()
    words = text_of(site / "html" / "index.html")
    for wanted in (
        "It draws <x>", "It went & went.", "a <b> check", "<us>", "1,234.5",
        "mnist train, embedded subset", "9.9", "2026-01-02", "ecotour run gan --seed 3",
        "--batch-size int", "at least 1", "convolutions", "After step 2,000: Late.",
        "yes == yes", "2 s, from the cache, 3 times", "plain – 4 s – – 0",
    ):  # fmt: skip
        assert wanted in words, wanted
    assert "<a>%%%b" in words.replace(" ", "")  # coloured, word for word
    assert SVG in page
    assert "<us>" not in page
    assert "<b> check" not in page
    # the demo's own prose and code, as sections below the page's own
    assert '<section id="what-you-will-see">' in page
    assert "class" in page
    assert "hk.transform" in words
    assert 'href="https://example.org/ecotour_gan/demo.py"' in page
    download = re.search(r'href="(_downloads/[^"]+/demo\.py)"', page)
    assert download
    assert "hk.transform" in (site / "html" / download[1]).read_text()
    assert (site / "html" / "_images" / "late.png").is_file()
    css = (site / "html" / "_static" / "ecotour.css").read_text()
    assert css == style()
    assert 'href="_static/ecotour.css' in page


def test_one_section_and_one_part_alone(site: Path) -> None:
    build(site)
    words = text_of(site / "html" / "more.html")
    assert "def cross_entropy" in words
    assert "class Generator" not in words
    assert "Early." not in words  # the earlier moment is told by its step
    assert "After step 1 " in words
    assert "Along the way" not in words  # one part alone has no heading


def test_what_changed_is_built_again_and_nothing_else(site: Path) -> None:
    build(site)
    again = build(site)
    assert "0 added, 0 changed, 0 removed" in again
    record = site / "kept" / "gan" / "record.json"
    record.write_text(record.read_text().replace("It went & went.", "It came."))
    assert "2 changed" in build(site)
    assert "It came." in text_of(site / "html" / "index.html")
    picture = site / "kept" / "gan" / "l.svg"
    picture.write_text(SVG.replace("0 0 2 1", "0 0 3 1"))
    build(site)
    assert "0 0 3 1" in (site / "html" / "index.html").read_text()


def test_mistakes_are_warnings_that_say_how_to_mend_them(site: Path) -> None:
    shutil.rmtree(site / "kept" / "gan")
    (site / "more.md").unlink()
    (site / "index.rst").write_text(
        "Theirs\n======\n\n.. ecotour-demo:: gan\n\n.. ecotour-gallery::\n\n   gan nowhere\n"
    )
    said = build(site, code=1)
    assert "holds no record" in said
    assert "ecotour record gan" in said
    assert "unknown document: '/nowhere'" in said or "unknown document: 'nowhere'" in said
    make_record(site / "kept" / "gan")
    (site / "index.rst").write_text(
        "Theirs\n======\n\n.. ecotour-demo:: gan\n   :parts: verdikt\n\n"
        ".. ecotour-demo:: gan\n   :parts: source\n   :section: Nothing\n\n"
        ".. ecotour-demo:: gan\n   :parts: views\n   :show: nothing\n"
    )
    said = build(site, code=1)
    assert "unknown part 'verdikt': choose from about, verdict" in said
    assert "no heading 'Nothing'; it has: " in said
    assert "shows no 'nothing'; it shows" in said


def test_a_number_in_a_sentence_is_the_records(site: Path) -> None:
    make = {"metrics": {"update": {"loss": 0.4591907, "lost": None}}}
    shutil.rmtree(site / "kept" / "gan")
    make_record(site / "kept" / "gan", **make)
    (site / "more.md").write_text(
        "# More\n\nIt is {ecotour-value}`gan; a <b> check; .2f`, then"
        " {ecotour-value}`gan; update.loss`.\n"
    )
    build(site)
    assert "It is 0.50, then 0.459." in text_of(site / "html" / "more.html")
    record = site / "kept" / "gan" / "record.json"
    record.write_text(record.read_text().replace("0.4591907", "0.25"))
    build(site)
    assert "then 0.25." in text_of(site / "html" / "more.html")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gan; update.los", "unknown value of gan 'update.los': did you mean update.loss?"),
        ("gna; update.loss", "gna holds no record"),
        ("gan", "'gan': write DEMO; NAME or DEMO; NAME; FORMAT"),
        ("gan; update.loss; .2q", "update.loss of gan is 0.5, not to be written as '.2q'"),
        ("gan; update.gone", "update.gone of gan is None, not to be written as '.3g'"),
    ],
)
def test_a_number_that_is_not_there_is_a_warning(text: str, said: str, site: Path) -> None:
    shutil.rmtree(site / "kept" / "gan")
    make_record(site / "kept" / "gan", metrics={"update": {"loss": 0.5, "gone": None}})
    (site / "more.md").write_text(f"# More\n\nIt is {{ecotour-value}}`{text}`.\n")
    found = build(site, code=1)
    assert said in found
    assert "more.md:3" in found


def test_a_missing_record_can_be_allowed(site: Path) -> None:
    shutil.rmtree(site / "kept" / "gan")
    build(site, "-D", "suppress_warnings=ecotour.record")
    assert "No run of gan has been recorded yet." in text_of(site / "html" / "index.html")


def test_other_builders_show_the_words(site: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-W", "-b", "text", str(site), str(site / "text")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    words = (site / "text" / "index.txt").read_text()
    assert "It went & went." in words
    assert "a <b> check" in words


def test_the_style_has_both_palettes_and_leaves_the_page_alone() -> None:
    css = style()
    for palette in (look.LIGHT, look.DARK):
        for name, colour in palette.items():
            assert f"--{name}: {colour};" in css
    selectors = re.findall(r"^([^{}@\n]+)\{", css, re.MULTILINE)
    assert all("ecotour" in selector for selector in selectors)
    used = set(re.findall(r"var\(--([a-z0-9-]+)\)", css))
    assert used <= set(look.LIGHT)


def test_a_record_that_is_damaged_is_refused(tmp_path: Path) -> None:
    from ecotour.errors import RecordError

    for number, (change, message) in enumerate([
        ({"kind": "something"}, "is no record made by"),
        ({"schema": 7}, "has schema 7"),
        ({"exhibits": [{"name": "x"}]}, "is damaged"),
        ({"exhibits": [{"name": "x", "role": "view", "caption": "", "file": "../x.png"}]},
         "no plain file name"),
    ]):  # fmt: skip
        path = make_record(tmp_path / str(number), **change)
        with pytest.raises(RecordError, match=message):
            records.read(path)
    with pytest.raises(RecordError, match="holds no record"):
        records.read(tmp_path / "nowhere")
