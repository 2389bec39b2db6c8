"""A run as a page and as a notebook that open, and run, elsewhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from lines import copy_to, keep, make_run

from ecotour import cli
from ecotour.authoring.export import standalone


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs")
    words = ("--steps", "20", "--batch-size", "16")
    return make_run(place / "line", *words, file=copy_to(place))


def test_a_page_with_its_pictures(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "page"
    assert cli.main(["export", str(run), "--to", "markdown", "--out", str(out)]) == 0
    text = (out / "line.md").read_text()
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)
    assert pictures
    for name in pictures:
        content = (out / name).read_text()
        assert content.startswith("<svg")
        assert "var(" not in content
        assert 'xmlns="http://www.w3.org/2000/svg"' in content
    assert {file.name for file in out.iterdir()} == {"line.md", *pictures}
    assert "| error of the slope |" in text
    assert "def judge(outcome" in text
    assert "--batch-size 16" in text
    assert str(run) not in text


def test_a_notebook_is_valid_and_runs(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "book"
    assert cli.main(["export", str(run), "--to", "notebook", "--out", str(out)]) == 0
    book = nbformat.read(out / "line.ipynb", as_version=4)
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    kinds = {kind for output in code[-1].outputs for kind in output.data}
    assert {"image/svg+xml", "text/markdown"} <= kinds
    # what a notebook does, without its server: each cell in turn, in one namespace
    (tmp_path / "IPython").mkdir()
    (tmp_path / "IPython" / "__init__.py").write_text("version_info = (9, 0, 0)\n")
    (tmp_path / "IPython" / "display.py").write_text(
        "Image = len\n\n\ndef display(size):\n    print('picture of', size, 'bytes')\n"
    )
    script = tmp_path / "cells.py"
    script.write_text(
        "import __future__, sys\nflags, names = 0, {'__name__': '__main__'}\n"
        f"for text in {[cell.source for cell in code]!r}:\n"
        "    block = compile(text, '<cell>', 'exec', flags, dont_inherit=True)\n"
        "    flags |= block.co_flags & __future__.annotations.compiler_flag\n"
        "    exec(block, names)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "fit 20 " in done.stdout
    assert "error of the slope" in done.stdout
    assert re.search(r"picture of \d{4,} bytes", done.stdout)
    recorded = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])["loss"]
    assert str(recorded) in done.stdout  # the same seed, flags and steps: the same number


def test_a_record_is_exported_by_its_name(run: Path, tmp_path: Path) -> None:
    kept = keep(run, tmp_path / "records", run.parent / "line.py").parent
    out = tmp_path / "page"
    words = ["export", "line", "--records", str(kept), "--to", "markdown", "--out", str(out)]
    assert cli.main(words) == 0
    assert (out / "line.md").is_file()


def test_nothing_is_overwritten_and_nothing_guessed(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").write_text("mine")
    assert cli.main(["export", str(run), "--to", "markdown", "--out", str(tmp_path)]) == 2
    assert "not empty" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["mine"]
    words = ["export", "nothing", "--to", "notebook", "--records", str(tmp_path)]
    assert cli.main(words) == 2
    assert "neither a run's directory nor a demo recorded" in capsys.readouterr().err
    assert cli.main(["export", str(run), "--to", "pdf"]) == 2


def test_a_drawing_stands_alone() -> None:
    text = standalone('<svg viewBox="0 0 1 1" style="max-width: 9px"><g style="fill: var(--ink)"/>')
    assert "var(" not in text
    assert text.count("xmlns") == 1
    assert "background: #ffffff" in text
