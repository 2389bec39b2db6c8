"""The sink that keeps the record of a run: ``run.json`` and ``metrics.jsonl``."""

from __future__ import annotations

import dataclasses
import math
import os
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

from ecotour.contract import events, flags
from ecotour.contract.demo import Check
from ecotour.contract.plan import Plan
from ecotour.errors import RecordError
from ecotour.rundir.claim import RunDirectory
from ecotour.rundir.frozen import digests, freeze
from ecotour.rundir.metric_rows import Rows, order_rows, read_history
from ecotour.rundir.record import SCHEMA, write
from ecotour.rundir.strict_json import nonfinite, to_json
from ecotour.running.history import History

WRITE_SECONDS = 5.0


class Recorder:
    """Builds the record from the events and keeps it on disk, so that it can be read at any time.

    A disk that is full does not end the run: what could not be written is kept, said, and tried
    again with the next report.

    Attributes:
        record: The record so far, in the form of ``run.json``.
    """

    def __init__(
        self,
        directory: RunDirectory,
        plan: Plan,
        command: list[str],
        warn: Callable[[str], None],
        earlier: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep the record of the run that ``command`` started, or resumed, in ``directory``.

        The first ``run.json`` is written at once, so that a run that is killed before its first
        step can be resumed.

        Args:
            directory: Where; owned by this process.
            plan: What was asked for.
            command: The words of the command line.
            warn: Called with a line on what cannot be written for now.
            earlier: The record of the part of the run that is gone on with.

        Raises:
            RecordError: Not even the first ``run.json`` can be written.
        """
        self.directory, self._warn = directory, warn
        self._rows = Rows(directory.path / "metrics.jsonl")
        self._written = 0.0
        self._lower_is_better: dict[str, Mapping[str, bool]] = {}
        self._troubles: dict[str, str] = {}
        self.record: dict[str, Any] = _blank(command) | _asked(plan) | dict(earlier or {})
        part = {
            "command": command,
            "started": _now(),
            "owner": {"pid": os.getpid(), "host": socket.gethostname()},
        }
        asked = _asked(plan)
        self.record |= {
            "steps_asked": asked["steps_asked"],
            "source_file": asked["source_file"],
            "source_hash": asked["source_hash"],
            "status": "running",
            "run_dir": str(directory.path),
            "owner": part["owner"],
            "parts": [*self.record["parts"], part],
            "checks": [],
            "error": None,
        }
        try:
            write(directory.path, self.record)
        except OSError as error:
            raise RecordError(self._complaint("run.json", error)) from error

    def __call__(self, event: events.Event) -> None:
        """Take note of ``event``."""
        record = self.record
        match event:
            case events.Started(plan, program, totals):
                self._lower_is_better = {n: s.lower_is_better for n, s in program.steps.items()}
                record |= {
                    "steps": max(totals.values(), default=0),
                    "totals": dict(totals),
                    "log_every": {n: plan.log_interval(total) for n, total in totals.items()}
                    | (record.get("log_every") or {}),
                    "guides": {
                        name: {str(m): list(guide) for m, guide in step.guides.items()}
                        for name, step in program.steps.items()
                    },
                    "notes": {str(name): str(note) for name, note in program.notes.items()},
                }
                self.write()
            case events.DataReady(info, _, _):
                described = {
                    name: dataclasses.asdict(one) | {"description": str(one)}
                    for name, one in info.items()
                }
                record["datasets"] = described
                record["data"] = described.get("train") or next(iter(described.values()), None)
            case events.StepBegun(of, done, _, _, _, _):
                record["progress"][of] = done
                failed = [step for step in record["unshown"].pop(of, ()) if step <= done]
                if done and failed:  # those of later steps come again
                    record["unshown"][of] = failed
                self._look_back(of, done)
            case events.Compiled(of, costs) | events.StepEnded(of, _, costs):
                record["ledger"].setdefault("steps", {})[of] = dict(costs)
                self.write()
            case events.Reported(of, step, _, metrics, elapsed_s, _):
                self._report(of, step, metrics, elapsed_s)
            case events.Snapshot(of, step, state, _, ledger):
                # whoever saves the state comes after this: its rows are on the disk by then
                record["ledger"] = dict(ledger)
                record["progress"][of] = step
                if step == (record.get("totals") or {}).get(of):
                    record["digests"][of] = {"step": step, "leaves": digests(freeze(state))}
                self._attempt("metrics.jsonl", self._rows.sync)
                self.write()
            case events.Unshown(of, step, _):
                record["unshown"].setdefault(of, []).append(step)
            case events.Recompiled(of, step, reason):
                record["warnings"].append(f"{of}: compiled again at step {step}: {reason}")
            case events.Warned(message):
                record["warnings"].append(message)
            case events.Judged(verdict, _):
                record["checks"] = [_described(check) for check in verdict.checks]
                record["summary"] = str(verdict.summary or "")
            case events.Ended(status, ledger, error):
                record |= {"status": status, "ledger": dict(ledger), "error": error}
                record["ended"] = _now()
                self._attempt("metrics.jsonl", self._finish_rows)
                if status != "finished":  # that is written when pictures and page are there too
                    self.write()
            case _:
                pass

    def write(self) -> None:
        """Write ``run.json`` as things stand."""
        metrics, checks = self.record["metrics"], self.record["checks"]
        self.record["nonfinite"] = nonfinite(metrics) + nonfinite(
            {check["name"]: check["value"] for check in checks}, "checks"
        )
        self._attempt("run.json", lambda: write(self.directory.path, self.record))
        self._written = time.monotonic()

    def close(self) -> None:
        """Close ``metrics.jsonl``.

        Raises:
            RecordError: Something could not be written to the last.
        """
        self._attempt("metrics.jsonl", self._rows.sync)
        self._rows.close()
        for trouble in self._troubles.values():
            raise RecordError(f"{trouble}; what stands there is older")

    def _report(self, of: str, step: int, metrics: Mapping[str, float], elapsed_s: float) -> None:
        record = self.record
        record["progress"][of] = step
        record["metrics"][of] = dict(metrics)
        self._keep_best(of, step, metrics)
        row: dict[str, Any] = {"step": step, "of": of, **metrics, "elapsed_s": elapsed_s}
        strange = {n: str(value) for n, value in metrics.items() if not math.isfinite(value)}
        if strange:
            row["nonfinite"] = strange  # JSON has null for all of them
            for name in strange:
                record["nonfinite_since"].setdefault(of, {}).setdefault(name, step)
        self._attempt("metrics.jsonl", lambda: self._rows.append(row))
        if time.monotonic() - self._written > WRITE_SECONDS:
            self.write()

    def _keep_best(self, of: str, step: int, metrics: Mapping[str, float]) -> None:
        """Note a value that is better than those before it. What is not finite is no value."""
        best = self.record["best"].setdefault(of, {})
        for name, lower in self._lower_is_better.get(of, {}).items():
            value, known = metrics.get(name, math.nan), best.get(name)
            if math.isfinite(value) and (
                known is None or (value < known["value"] if lower else value > known["value"])
            ):
                best[name] = {"value": value, "step": step}

    def _look_back(self, of: str, done: int) -> None:
        """Find the best values of the rows that a resumed run goes on from."""
        self.record["best"].pop(of, None)
        if done and self._lower_is_better.get(of):
            history = read_history(self.directory.path)[0].get(of, History())
            for name, lower in self._lower_is_better[of].items():
                if found := history.best(name, lower=lower):
                    self._keep_best(of, found[0], {name: found[1]})

    def _finish_rows(self) -> None:
        self._rows.sync()
        if len(self.record["parts"]) > 1:
            # a longer run comes back to named steps that others have followed
            self._rows.close()
            order_rows(self.directory.path, list(self.record.get("totals") or ()))

    def _attempt(self, name: str, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            trouble = self._complaint(name, error)
            if name not in self._troubles:
                self._warn(f"{trouble}; the run goes on and tries again: make room")
            self._troubles[name] = trouble
        else:
            self._troubles.pop(name, None)

    def _complaint(self, name: str, error: OSError) -> str:
        size = self._rows.waiting or len(to_json(self.record, indent=1))
        why = os.strerror(error.errno) if error.errno else str(error)
        return f"cannot write {self.directory.path / name} ({size:,} bytes): {why}"


def _blank(command: list[str]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "command": command,
        "started": _now(),
        "parts": [],
        "ledger": {"steps": {}},
        "progress": {},
        "metrics": {},
        "best": {},
        "data": None,
        "nonfinite": [],
        "nonfinite_since": {},
        "digests": {},
        "warnings": [],
        "unshown": {},
        "artifacts": {},
        "environment": {},
    }


def _asked(plan: Plan) -> dict[str, Any]:
    return {
        "demo": plan.demo,
        "about": str(plan.about),
        "distribution": plan.distribution,
        "source_file": None if plan.source_file is None else str(plan.source_file),
        "source_hash": plan.source_hash,
        "seed": plan.seed,
        "config": flags.plain(plan.config),
        "steps_asked": plan.steps,
        "checkpoint_every": plan.checkpoint_every,
        "stop_on_nonfinite": plan.stop_on_nonfinite,
        "data_choice": plan.data,
        "data_dir": None if plan.data_dir is None else str(plan.data_dir),
    }


def _described(check: Check) -> dict[str, Any]:
    """A check in the record's form, whatever a demo put into it."""
    try:
        value: Any = check.value if isinstance(check.value, int) else float(check.value)
    except (TypeError, ValueError):
        value = math.nan
    texts = {"name": str(check.name), "want": str(check.want)}
    return dataclasses.asdict(check) | texts | {"value": value}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")
