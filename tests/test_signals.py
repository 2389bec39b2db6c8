"""Signals, vanished terminals and closed streams, with real processes and real ptys."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import runs
from runs import ecotour

from ecotour.rundir.checkpoint import Store

ENDLESS = str(Path(__file__).parent / "demos" / "endless.py")
RUN = ["run", ENDLESS, "--log-every", "10", "--checkpoint-every", "50"]
FOREVER = [*RUN, "--steps", "1000000"]


def reported(out: Path, steps: int = 100) -> Any:
    """Whether a run has come so far."""
    return lambda: (out / "metrics.jsonl").exists() and len(runs.rows(out)) > steps // 10


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=["SIGINT", "SIGTERM", "SIGHUP"],
)
def test_one_signal_ends_with_a_checkpoint_and_the_line_that_goes_on(
    number: int, code: int, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    process = runs.start(*FOREVER, "--out", out)
    runs.wait_for(reported(out), process)
    process.send_signal(number)
    said = process.communicate()[1]
    assert process.returncode == code, said
    assert f"ecotour resume {out}\n" in said  # in one piece, to be copied
    record = runs.record(out)
    assert record["status"] == "interrupted"
    step = Store(out).steps("walk")[-1]
    assert record["progress"]["walk"] == step
    assert runs.rows(out)[-1]["step"] == step // 10 * 10
    assert "Traceback" not in said
    if number == signal.SIGINT:  # and what goes on is what one run would have been
        total = step + 37
        assert ecotour("resume", out, "--steps", total, "--quiet") == 0
        once = tmp_path / "once"
        assert ecotour(*RUN, "--steps", total, "--quiet", "--out", once) == 0
        assert runs.rows(out) == runs.rows(once)
        digests = [Store(o).about("walk", total)["leaves"][0]["sha256"] for o in (out, once)]
        assert digests[0] == digests[1]


@pytest.mark.parametrize("raised", ["ImportError('half of a module')", "OSError(4, 'call')"])
def test_an_interrupted_import_is_an_interrupt_whatever_it_raises(
    raised: str, tmp_path: Path
) -> None:
    demo = tmp_path / "slow.py"
    demo.write_text(
        "import os, signal, time\n"
        "try:\n"
        "    os.kill(os.getpid(), signal.SIGINT); time.sleep(10)\n"
        f"except KeyboardInterrupt:\n    raise {raised}\n"
    )
    process = runs.start("run", demo, "--json", "--out", tmp_path / "run", stdout=subprocess.PIPE)
    document, said = process.communicate()
    assert (process.returncode, said) == (130, "ecotour: interrupted\n")
    assert json.loads(document)["error"] == "interrupted"
    assert not (tmp_path / "run").exists()


def test_a_second_signal_ends_at_once_and_leaves_the_last_good_checkpoint(tmp_path: Path) -> None:
    out = tmp_path / "run"
    # a step of this size takes minutes, so nothing but the second signal can end it
    process = runs.start(
        *FOREVER, "--out", out, "--size", 200_000, "--work", 200_000, "--checkpoint-every", 1
    )
    record = out / "run.json"
    runs.wait_for(lambda: record.exists() and bool(runs.record(out)["ledger"]["steps"]), process)
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    assert runs.record(out)["status"] == "running"
    assert not list(out.rglob("*.part"))


def test_under_nohup_a_hangup_is_nothing(tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [sys.executable, "-m", "ecotour", *RUN, "--steps", "600", "--out", str(out)]
    process = subprocess.Popen(
        ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", *command], stderr=subprocess.PIPE, text=True
    )
    runs.wait_for(reported(out, 20), process)
    process.send_signal(signal.SIGHUP)
    process.communicate()
    assert process.returncode == 0
    assert runs.record(out)["status"] == "finished"


def test_a_terminal_that_vanishes_ends_nothing(tmp_path: Path) -> None:
    out = tmp_path / "run"
    master, slave = pty.openpty()
    process = runs.start(
        *RUN, "--steps", 600, "--out", out, stdin=slave, stdout=slave, stderr=slave,
        env=runs.environment(TERM="xterm"), start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    runs.wait_for(reported(out, 20), process)
    os.close(master)  # from now on each write is an EIO
    assert process.wait() == 0
    assert runs.record(out)["status"] == "finished"


@pytest.mark.parametrize(
    "streams", ["<&- >&- 2>&-", "> /dev/full 2> /dev/full"], ids=["closed", "full"]
)
def test_streams_that_take_nothing_end_nothing(streams: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = f'exec "$@" {streams}'
    arguments = [*RUN, "--steps", "30", "--out", str(out), "--json"]
    python = [sys.executable, "-m", "ecotour"]
    finished = subprocess.run(["sh", "-c", command, "sh", *python, *arguments], check=False)
    assert finished.returncode == 0
    assert runs.record(out)["status"] == "finished"
    text = (out / "metrics.jsonl").read_text()
    assert text.count("\n") == len(runs.rows(out)) == 4  # nothing of the streams in our files


def test_a_reader_that_goes_away_ends_nothing(tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = runs.start(*RUN, "--steps", 600, "--out", out, "--json", stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    process.stderr.close()
    assert process.wait() == 0
    assert runs.record(out)["status"] == "finished"


def test_from_a_thread_the_hosts_handlers_stay_as_they_are(tmp_path: Path) -> None:
    mine = lambda number, frame: None  # noqa: E731
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, mine) for number in numbers}
    codes: list[int] = []
    try:
        arguments = [*RUN, "--steps", 30, "--quiet", "--out", tmp_path / "thread"]
        thread = threading.Thread(target=lambda: codes.append(ecotour(*arguments)))
        thread.start()
        while thread.is_alive():
            assert all(signal.getsignal(number) is mine for number in numbers)
            thread.join(0.01)
        assert ecotour(*arguments[:-1], tmp_path / "main") == 0
        assert all(signal.getsignal(number) is mine for number in numbers)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert codes == [0]
    assert runs.rows(tmp_path / "thread") == runs.rows(tmp_path / "main")
