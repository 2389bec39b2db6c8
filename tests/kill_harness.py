"""Kills runs with SIGKILL at random moments and proves that each can be gone on with.

    python tests/kill_harness.py --kills 200 --seed 0

A run is started, killed, resumed, killed again, until it has finished; then its states, its
metrics, its verdict and its exhibits are compared, bit for bit, with those of a run that nobody
touched. What a demo says of the clock is left out: quantities by the names by which `ecotour drift`
knows them, and exhibits that differ between two runs that nobody touched, which are named at the
end. Most children are forked from this process, which has imported everything and started
nothing, so that a kill costs no import; the rest are started afresh, so that imports are hit too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ecotour.trust.drift import is_timing

DEMO = Path(__file__).parent / "demos" / "small.py"
RUN = [str(DEMO), "--steps", "24", "--log-every", "3", "--checkpoint-every", "2"]


@dataclass
class Figures:
    """What a campaign came to."""

    kills: int = 0
    runs: int = 0
    resumes: int = 0
    moments: Counter[str] = field(default_factory=Counter)
    reports: int = 0
    clocked: list[str] = field(default_factory=list)
    """Exhibits that were not compared: they show what the clock said."""


def campaign(
    workdir: Path, run: list[str], *, kills: int, seed: int, fresh: float, fork: bool = True
) -> Figures:
    """Kill ``kills`` times; a ``fresh`` share of the children are new processes.

    Raises:
        AssertionError: A run could not be resumed, or came out different.
    """
    chance, figures = random.Random(seed), Figures()
    began = time.perf_counter()
    straight = workdir / "straight"
    launch(workdir, ["run", *run, "--out", str(straight)], fork=fork).finish()
    again = time.perf_counter()
    twin = workdir / "twin"  # with the compilation cache filled: how long a run takes
    launch(workdir, ["run", *run, "--out", str(twin)], fork=fork).finish()
    # how long a child lives, forked or fresh: a guess that follows the load of the machine
    lives = {False: time.perf_counter() - again, True: again - began}
    one, other = essence(straight)["exhibits"], essence(twin)["exhibits"]
    figures.clocked = [name for name in one if name in other and one[name] != other[name]]
    wanted = essence(straight, figures.clocked)
    assert essence(twin, figures.clocked) == wanted, "two runs that nobody touched differ"
    while figures.kills < kills:
        out = workdir / f"run-{figures.runs:04d}"
        figures.runs += 1
        while True:
            resume = (out / "run.json").exists()
            command = ["resume", str(out)] if resume else ["run", *run, "--out", str(out)]
            figures.resumes += resume
            anew = not fork or chance.random() < fresh
            child = launch(workdir, command, fork=not anew)
            delay, started = chance.uniform(0, lives[anew]), time.perf_counter()
            if figures.kills < kills and child.kill_after(delay):
                figures.kills += 1
                lives[anew] *= 1.05
                figures.moments[moment(out)] += 1
                print(f"{figures.kills}: {out.name} killed {moment(out)}", flush=True)
                if (out / "run.json").exists() and chance.random() < 0.1:
                    launch(workdir, ["report", str(out)], fork=fork).finish()
                    figures.reports += 1
            else:
                child.finish()
                lives[anew] += 0.5 * (time.perf_counter() - started - lives[anew])
                break
        found = essence(out, figures.clocked)
        for part, value in wanted.items():
            assert found[part] == value, f"{out}: {part} differ from those of the straight run"
        assert not list(out.rglob("*.part")), f"{out} holds temporary files"
        assert not list(out.rglob("*orbax-checkpoint-tmp*")), f"{out} holds torn checkpoints"
    return figures


def essence(out: Path, clocked: Sequence[str] = ()) -> dict[str, Any]:
    """All of a run that must not depend on how often it was killed.

    Of the exhibits in ``clocked`` that is that they are there.
    """
    record = json.loads((out / "run.json").read_text())
    assert record["status"] == "finished", f"{out} is {record['status']}: {record['error']}"
    rows = [
        _without_clock(json.loads(line))
        for line in (out / "metrics.jsonl").read_text().splitlines()
    ]
    states = {}
    for named in sorted((out / "checkpoints").iterdir()):
        newest = max(entry for entry in named.iterdir() if entry.name.isdigit())
        about = json.loads((newest / "about" / "metadata").read_text())
        states[named.name] = (newest.name, about["leaves"])
    exhibits = {
        path.name: b"" if path.name in clocked else path.read_bytes()
        for path in sorted((out / "exhibits").glob("*.json"))
    }
    return {
        "rows": rows,
        "states": states,
        "checks": [check for check in record["checks"] if not is_timing(check["name"])],
        "exhibits": exhibits,
        "metrics": _without_clock(record["metrics"]),
        "best": _without_clock(record["best"]),
    }


def _without_clock(value: Any) -> Any:
    """``value`` less the members whose names say that the clock has a part in them."""
    if not isinstance(value, dict):
        return value
    return {name: _without_clock(item) for name, item in value.items() if not is_timing(name)}


def moment(out: Path) -> str:
    """In which phase a run was killed, as far as its directory tells."""
    if not (out / "run.json").exists():
        return "before its directory"
    record = json.loads((out / "run.json").read_text())
    if list(out.rglob("*orbax-checkpoint-tmp*")):
        return "while a checkpoint was written"
    if list(out.rglob("*.part")):
        return "while a file was written"
    if record["status"] == "finished":
        return "after the verdict, in pictures or report"
    if not record["progress"]:
        return "before its first step"
    totals = record.get("totals") or {}
    if totals and all(record["progress"].get(of) == n for of, n in totals.items()):
        return "in the verdict"
    return "between two steps"


class Child:
    """A process that runs one command of ecotour; its output goes to a file."""

    def __init__(self, pid: int, what: list[str], log: Path) -> None:
        """The process ``pid``."""
        self.pid, self.what, self.log = pid, what, log
        self.code: int | None = None

    def kill_after(self, seconds: float) -> bool:
        """Kill it after ``seconds``; whether it was still alive then."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self._ended(os.WNOHANG):
                return False
            time.sleep(min(0.005, max(0.0, deadline - time.monotonic())))
        os.kill(self.pid, signal.SIGKILL)
        self._ended(0)
        return self.code == -signal.SIGKILL

    def finish(self) -> None:
        """Wait for it; it must end well."""
        self._ended(0)
        assert self.code == 0, f"{self.what} ended with {self.code}:\n{self.log.read_text()}"

    def _ended(self, options: int) -> bool:
        if self.code is None:
            pid, status = os.waitpid(self.pid, options)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None


def launch(workdir: Path, arguments: list[str], *, fork: bool) -> Child:
    """Start ``ecotour`` with ``arguments``, by a fork of this process or afresh."""
    log = workdir / "log.txt"
    if not fork:
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [sys.executable, "-m", "ecotour", *arguments], stdout=stream, stderr=stream
            )
        process.returncode = 0  # it is waited for by its number
        return Child(process.pid, arguments, log)
    preload()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(descriptor, 1)
            os.dup2(descriptor, 2)
            from ecotour import cli

            code = cli.main(arguments)
        except BaseException:  # noqa: BLE001 - the parent must read it
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return Child(pid, arguments, log)


def preload() -> None:
    """Import what a run imports; nothing here may start JAX or a thread."""
    # ruff: noqa: F401 - all of it is imported for the children
    import jinja2
    import matplotlib.figure
    import optax
    import orbax.checkpoint
    import rich.console

    import ecotour.cli.drive
    import ecotour.cli.report
    import ecotour.cli.resume
    import ecotour.running.runner
    import ecotour.sinks.checkpoints
    import ecotour.sinks.pictures
    import ecotour.sinks.report
    import ecotour.sinks.terminal


def main() -> None:
    """Run a campaign and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fresh", type=float, default=0.1, help="share of new processes")
    parser.add_argument("--workdir", type=Path, required=True, help="an empty directory")
    parser.add_argument("run", nargs="*", help="arguments of `ecotour run` (default: a small demo)")
    chosen = parser.parse_args()
    chosen.workdir.mkdir(parents=True)
    os.environ["ECOTOUR_CACHE_DIR"] = str(chosen.workdir / "cache")
    figures = campaign(
        chosen.workdir.absolute(),
        chosen.run or RUN,
        kills=chosen.kills,
        seed=chosen.seed,
        fresh=chosen.fresh,
    )
    print(
        f"{figures.kills} kills of {figures.runs} runs, {figures.resumes} resumed, "
        f"{figures.reports} reports of killed runs; all came out bit for bit the same"
    )
    if figures.clocked:
        print(f"exhibits that show times, not compared: {', '.join(figures.clocked)}")
    for what, count in figures.moments.most_common():
        print(f"  {count:4d} {what}")


if __name__ == "__main__":
    main()
