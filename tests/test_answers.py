"""What a command answers on standard output: written, or said to be lost; coloured as asked for."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import lines
import pytest

ESCAPE = "\x1b["
TOUR = "chex,gan,jax,jraph,optax,rlax"
DROPPED = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "PYTHONUNBUFFERED", "COLORTERM")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lines.make_run(tmp_path_factory.mktemp("answers") / "run", "--steps", "20")


def ecotour(*words: object, out: object = subprocess.PIPE, **given: str) -> tuple[int, str, str]:
    environment = {k: v for k, v in os.environ.items() if k not in DROPPED} | given
    command = [sys.executable, "-m", "ecotour", *map(str, words)]
    done = subprocess.run(
        command, stdout=out, stderr=subprocess.PIPE, text=True, check=False, env=environment
    )  # type: ignore[call-overload]
    return done.returncode, done.stdout or "", done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full device")
@pytest.mark.parametrize(
    ("words", "unbuffered"),
    [(words, "") for words in (
        "list", "list --json", "report RUN", "report RUN --json", "show FILE", "show FILE --json",
        "doctor", "doctor --json", "export RUN --to markdown --out OUT", "--help", "--version",
        "run --help", "run FILE --help",
    )] + [("list", "1"), ("report RUN", "1")],
)  # fmt: skip
def test_an_answer_that_cannot_be_written_ends_with_1(
    words: str, unbuffered: str, run: Path, tmp_path: Path
) -> None:
    places = {"RUN": str(run), "FILE": str(lines.FILE), "OUT": str(tmp_path / "page")}
    with Path("/dev/full").open("w") as full:
        code, _, told = ecotour(
            *(places.get(word, word) for word in words.split()),
            out=full,
            PYTHONUNBUFFERED=unbuffered,
            ECOTOUR_DISABLE=TOUR,  # doctor would load them all
        )
    assert code == 1, told
    assert re.fullmatch(r"ecotour: .*No space left on device\n", told), told


@pytest.mark.parametrize("words", ["report RUN", "show FILE"])
def test_colours_go_into_a_pipe_where_they_are_forced_and_never_against_no_color(
    words: str, run: Path
) -> None:
    asked = [{"RUN": run, "FILE": lines.FILE}.get(word, word) for word in words.split()]
    assert ESCAPE not in ecotour(*asked)[1]
    assert ESCAPE not in ecotour(*asked, FORCE_COLOR="")[1]
    assert ESCAPE in ecotour(*asked, FORCE_COLOR="1", TERM="dumb")[1]
    assert ESCAPE not in ecotour(*asked, FORCE_COLOR="1", NO_COLOR="1")[1]
    document = ecotour(*asked, "--json", FORCE_COLOR="1")[1]
    json.loads(document)
    assert ESCAPE not in document


@pytest.mark.parametrize("columns", ["0", "-5", "many", "²", "9" * 5000], ids=lambda c: c[:5])
def test_a_width_that_is_none_is_not_believed(columns: str, run: Path) -> None:
    ours, theirs = pty.openpty()
    code, _, told = ecotour("report", run, out=theirs, COLUMNS=columns, LINES=columns, TERM="xterm")
    os.close(theirs)
    written = os.read(ours, 65536).decode()
    os.close(ours)
    assert (code, told) == (0, "")
    assert "where the time went" in written
