"""The terminal sink on real ptys and pipes: the same run, whatever watches it."""

from __future__ import annotations

import contextlib
import fcntl
import io
import math
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import numpy as np
import pytest
import synthetic
from rich.console import Console

from ecotour import events
from ecotour.exhibits import Images
from ecotour.sinks import glyphs
from ecotour.sinks.plain import LINES
from ecotour.sinks.stream import SafeStream
from ecotour.sinks.summary import summary
from ecotour.sinks.terminal import Terminal

HERE = Path(__file__).parent
SCRIPT = """
import sys
sys.path.insert(0, {here!r})
import synthetic
from ecotour.sinks.terminal import Terminal
sink = Terminal(quiet={quiet})
record = {{"demo": "gan", "status": "finished", "ledger": {{}}, "data": vars(synthetic.INFO)}}
for event in synthetic.run(400, names={names!r}):
    sink(event)
    if type(event).__name__ == "Judged":
        record["checks"] = [vars(check) for check in event.verdict.checks]
record["ledger"] = event.ledger
sink.close()
sink.summarise(record)
print("standard output is free")
"""
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
TERMINAL = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}


def command(*, quiet: bool = False, names: tuple[str, ...] = ("update",)) -> list[str]:
    script = SCRIPT.format(here=str(HERE), quiet=quiet, names=names)
    return [sys.executable, "-W", "error", "-c", script]


def environment(**variables: str) -> dict[str, str]:
    dropped = ("TERM", "COLORTERM", "NO_COLOR", "COLUMNS", "LINES", "PYTHONIOENCODING", "LC_ALL")
    return {k: v for k, v in os.environ.items() if k not in dropped} | variables


def on_pty(width: int, height: int = 40, **variables: str) -> str:
    """What the sink writes to a terminal of that size."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    with subprocess.Popen(
        command(), stdout=subprocess.PIPE, stderr=theirs, stdin=subprocess.DEVNULL,
        env=environment(**variables),
    ) as process:  # fmt: skip
        os.close(theirs)
        written = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # Linux's way to say that the other end is closed
                break
            if not chunk:
                break
            written += chunk
        assert process.stdout is not None
        assert process.stdout.read() == b"standard output is free\n"
        assert process.wait() == 0, written.decode("utf-8", "replace")[-2000:]
    os.close(ours)
    return written.decode(variables.get("PYTHONIOENCODING", "utf-8"))


def on_pipe(*, quiet: bool = False, names: tuple[str, ...] = ("update",), **variables: str) -> str:
    done = subprocess.run(
        command(quiet=quiet, names=names), capture_output=True, check=False,
        env=environment(**variables),
    )  # fmt: skip
    text = done.stderr.decode(variables.get("PYTHONIOENCODING", "utf-8").partition(":")[0])
    assert done.returncode == 0, text
    assert done.stdout == b"standard output is free\n"
    return text


def test_a_terminal_shows_progress_sparklines_and_pictures() -> None:
    text = on_pty(100, **TERMINAL)
    assert "▀" in text
    assert re.search(r"\x1b\[38;2;\d+;\d+;\d+;48;2;\d+;\d+;\d+m▀", text), "no pixels in true colour"
    plain = ESCAPE.sub("", text)
    assert "step 400 of 400" in plain
    assert "samples after step 400 of update" in plain
    assert any(mark in plain for mark in glyphs.SPARKS)
    assert "mnist train, embedded subset (10,000 of 60,000 examples)" in plain
    assert "1 of 4 checks not passed" in plain
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1, "the cursor comes back"


def test_a_terminal_is_redrawn_at_most_eight_times_a_second() -> None:
    import time

    began = time.monotonic()
    frames = ESCAPE.sub("", on_pty(100, **TERMINAL)).count("mnist train, embedded")
    assert frames <= 8 * (time.monotonic() - began) + 8  # and the ends of the phases


@pytest.mark.parametrize("width", [0, 1, 20, 39, 40, 60, 80, 500])
def test_any_width_will_do(width: int) -> None:
    text = on_pty(width, **TERMINAL)
    assert ("\x1b[" in text) == (width == 0 or width >= 40), "a narrow one gets plain lines"
    if width >= 40:
        rows = re.split(r"[\r\n]", ESCAPE.sub("", text))
        assert max(map(len, rows)) <= width


@pytest.mark.parametrize("height", [1, 3, 10])
def test_any_height_will_do(height: int) -> None:
    assert "checks not passed" in ESCAPE.sub("", on_pty(80, height, **TERMINAL))


def test_no_color_means_no_colour_and_the_pictures_are_shades() -> None:
    text = on_pty(100, NO_COLOR="1", **TERMINAL)
    assert not re.search(r"\x1b\[[0-9;]*(3[0-9]|4[0-9]|9[0-7]|10[0-7])[0-9;]*m", text)
    assert "▓" in text
    assert "▀" not in text


@pytest.mark.parametrize("term", ["dumb", ""])
def test_a_dumb_terminal_gets_plain_lines(term: str) -> None:
    text = on_pty(80, TERM=term)
    assert "\x1b" not in text
    assert "update: step" in text


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1"])
@pytest.mark.parametrize("terminal", [True, False], ids=["tty", "pipe"])
def test_a_poor_encoding_is_spelled_out(encoding: str, terminal: bool) -> None:
    strict = {"PYTHONIOENCODING": encoding}
    text = on_pty(100, **TERMINAL, **strict) if terminal else on_pipe(**strict)
    plain = ESCAPE.sub("", text)
    assert "checks not passed" in plain
    assert "?" not in plain, "a character that nobody thought of"
    assert "▀" not in plain


@pytest.mark.parametrize("names", [("update",), tuple(f"step {k}" for k in range(12))], ids=len)
def test_a_pipe_gets_few_plain_lines(names: tuple[str, ...]) -> None:
    text = on_pipe(names=names, TERM="xterm-256color", CLICOLOR_FORCE="1")
    assert "\x1b" not in text
    assert "\r" not in text
    lines = text.split("\n")
    progress = [line for line in lines if ": step " in line]
    assert LINES <= len(progress) <= LINES + 1
    assert len(lines[: lines.index("")]) <= 30, "before the summary"
    assert progress[-1].startswith(f"{names[-1]}: step 400 of 400")
    steps = [int(re.search(r"step +([\d,]+) of", line)[1]) for line in progress]  # type: ignore[index]
    if len(names) == 1:
        assert np.ptp(np.diff(steps[1:])) <= 2, "regular"


def test_quiet_shows_warnings_and_nothing_else() -> None:
    assert on_pipe(quiet=True) == "warning: metric 'disc_loss' of 'update' is nan at step 2520\n"


def test_a_picture_that_is_none_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    import jax.numpy as jnp

    gone = jnp.ones((1, 8, 8))
    written = io.StringIO()
    written.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    sink = Terminal(written)
    for event in synthetic.run(20):
        if isinstance(event, events.Viewed):
            shown = {"flat": Images([0.0, 1.0], "No picture."), "right": Images(gone, "One.")}
            event = events.Viewed(event.of, event.step, shown)
        sink(event)
        if isinstance(event, events.Viewed) and event.step == 20:
            gone.delete()  # as the next step does it
    sink.close()
    text = ESCAPE.sub("", written.getvalue())
    assert "right after step 20 of update" in text
    assert "flat after step" not in text


def test_a_closed_pipe_ends_nothing() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    with subprocess.Popen(
        command(), stdout=subprocess.PIPE, stderr=theirs, env=environment()
    ) as process:
        os.close(theirs)
        assert process.stdout is not None
        assert process.stdout.read() == b"standard output is free\n"


def test_a_vanished_terminal_ends_nothing() -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command(), stdout=subprocess.PIPE, stderr=theirs, env=environment(**TERMINAL)
    ) as process:
        os.close(theirs)
        os.read(ours, 1)
        os.close(ours)
        assert process.stdout is not None
        assert process.stdout.read() == b"standard output is free\n"


@pytest.mark.parametrize("stream", ["none", "closed", "full"])
def test_a_stream_that_fails_ends_nothing(stream: str) -> None:
    if stream == "full":
        with Path("/dev/full").open("w", encoding="utf-8", buffering=1) as file:
            safe = SafeStream(file)
            safe.write("one line\n")
            assert not safe.alive
            safe.write("another\n")
            safe.flush()
            _drop(file)
        return
    closed = io.StringIO()
    closed.close()
    sink = Terminal(None if stream == "none" else closed)
    if stream == "none":
        sink._stream = SafeStream(None)
    for event in synthetic.run(20):
        sink(event)
    sink.close()
    sink.summarise({})


def _drop(file: object) -> None:
    """Forget what the buffer could not write, so that closing does not try again."""
    with contextlib.suppress(OSError):
        file.close()  # type: ignore[attr-defined]


def test_control_characters_of_a_demo_never_reach_the_terminal() -> None:
    written = io.StringIO()
    sink = Terminal(written)
    for event in synthetic.run(20, demo="\x1b]0;owned\x07", names=("a\x1b[2Jb\nc",)):
        sink(event)
    sink(events.Warned("two\nlines \x1b[31m"))
    sink.summarise({"demo": "\x1b[31m", "error": "\x1b[0m", "checks": [{"name": "\x1b[1m"}]})
    assert "\x1b" not in written.getvalue()
    assert "\x07" not in written.getvalue()


@pytest.mark.parametrize("width", [1, 10, 40, 200])
@pytest.mark.parametrize(
    "record",
    [
        {},
        {"status": "failed", "error": "no data", "ledger": None, "checks": None},
        {"status": "interrupted", "run_dir": "a b", "ledger": {"total_s": 3.0, "steps": {}}},
        {"ledger": {"steps": {"a": {"trace_s": None, "steady_ms": None}}}, "checks": [{}]},
        {"ledger": {"total_s": 0.0, "import_s": 0.0}, "data": {"name": "mnist"}},
    ],
    ids=str,
)
def test_a_summary_of_whatever_there_is(record: dict[str, object], width: int) -> None:
    written = io.StringIO()
    Console(file=written, width=width).print(summary(record), crop=False)
    assert written.getvalue().strip()


def test_an_interrupted_run_says_how_it_goes_on() -> None:
    written = io.StringIO()
    runs = "/scratch/of/somebody/with/a/long/name/runs"
    record = {"demo": "gan", "status": "interrupted", "run_dir": f"{runs}/my gan"}
    Console(file=written, width=40).print(summary(record), crop=False)
    assert f"ecotour resume '{runs}/my gan'\n" in written.getvalue(), "in one piece, to be copied"


@pytest.mark.parametrize(("progress", "offered"), [({}, False), ({"update": 40}, True)], ids=str)
def test_a_failed_run_says_how_it_goes_on_if_it_came_anywhere(
    progress: dict[str, int], offered: bool
) -> None:
    written = io.StringIO()
    record = {"demo": "gan", "status": "failed", "run_dir": "run", "progress": progress}
    Console(file=written, width=80).print(summary(record), crop=False)
    assert ("ecotour resume run" in written.getvalue()) is offered


def test_sparklines_show_shape_and_gaps() -> None:
    assert glyphs.sparkline([0, 1, 2, 3, 4, 5, 6, 7], 8) == "▁▂▃▄▅▆▇█"
    assert glyphs.sparkline([0, math.nan, 7], 8) == "▁ █"
    assert glyphs.sparkline([1.0] * 4, 8) == "▅▅▅▅"
    assert glyphs.sparkline([0, 1], 8, ascii_only=True) == "_#"
    assert glyphs.sparkline(range(800), 8) == "▁▂▃▄▅▆▇█"
    assert glyphs.sparkline([math.inf, math.nan], 8) == "  "
    assert glyphs.sparkline([-1e308, 1e308], 8) != ""
    assert glyphs.sparkline([], 8) == glyphs.sparkline([1], 0) == ""


def test_a_history_is_bounded_and_keeps_its_shape() -> None:
    history = glyphs.History()
    for value in range(1_000_000):
        history.add(float(value))
    assert len(history.values) <= glyphs.MOST_KEPT
    assert glyphs.sparkline(history.values, 8) == "▁▂▃▄▅▆▇█"


def test_small_pictures_are_area_means() -> None:
    digit = synthetic.digits(1)[0].astype(float)
    half = glyphs.resized(digit[..., None], 14, 14)[..., 0]
    expected = digit.reshape(14, 2, 14, 2).mean(axis=(1, 3))
    np.testing.assert_allclose(half, expected, rtol=1e-12, atol=1e-9)
    for size in (5, 20, 28, 40):
        again = glyphs.resized(digit[..., None], size, size)
        assert again.shape == (size, size, 1)
        assert again.mean() == pytest.approx(digit.mean(), rel=1e-9)


def test_half_blocks_carry_two_pixels_each() -> None:
    picture = np.zeros((1, 4, 4), np.uint8)
    picture[0, 0, :] = 255
    lines = glyphs.picture_row(picture, 4, 1, colour=True, ascii_only=False)
    assert [line.plain for line in lines] == ["▀▀▀▀", "▀▀▀▀"]
    assert str(lines[0].spans[0].style) == "#ffffff on #000000"
    assert str(lines[1].spans[0].style) == "#000000 on #000000"
    assert glyphs.picture_row(picture, 4, 1, colour=False, ascii_only=True)[1].plain == "    "
