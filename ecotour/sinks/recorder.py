"""The sink that keeps the record of a run: ``run.json`` and ``metrics.jsonl``."""

from __future__ import annotations

import dataclasses
import os
import socket
import time
from typing import IO, Any

from ecotour import events
from ecotour.record import SCHEMA, RunDirectory, nonfinite, to_json

WRITE_SECONDS = 5.0


class Recorder:
    """Builds the record from the events and keeps it on disk, so that it can be read at any time.

    Attributes:
        record: The record so far, in the form of ``run.json``.
    """

    def __init__(
        self, directory: RunDirectory, command: list[str], environment: dict[str, Any]
    ) -> None:
        """Keep the record of the run that ``command`` started in ``directory``."""
        self.directory = directory
        self._rows: IO[str] | None = None
        self._written = 0.0
        self.record: dict[str, Any] = {
            "schema": SCHEMA,
            "status": "running",
            "run_dir": str(directory.path),
            "command": command,
            "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            "owner": {"pid": os.getpid(), "host": socket.gethostname()},
            "ledger": {"steps": {}},
            "progress": {},
            "metrics": {},
            "nonfinite": [],
            "warnings": [],
            "checks": [],
            "artifacts": {},
            "environment": environment,
        }

    def __call__(self, event: events.Event) -> None:
        """Take note of ``event``."""
        record = self.record
        match event:
            case events.Started(plan, program, totals):
                record |= {
                    "demo": plan.demo,
                    "distribution": plan.distribution,
                    "steps": max(totals.values(), default=0),
                    "seed": plan.seed,
                    "config": dataclasses.asdict(plan.config),
                    "data": None,
                    "totals": dict(totals),
                    "log_every": {n: plan.log_interval(total) for n, total in totals.items()},
                    "checkpoint_every": plan.checkpoint_every,
                    "stop_on_nonfinite": plan.stop_on_nonfinite,
                    "data_choice": plan.data,
                    "guides": {
                        name: {m: list(guide) for m, guide in step.guides.items()}
                        for name, step in program.steps.items()
                    },
                    "notes": dict(program.notes),
                }
                self.write()
            case events.DataReady(info, _):
                described = {
                    name: dataclasses.asdict(one) | {"description": str(one)}
                    for name, one in info.items()
                }
                record["datasets"] = described
                record["data"] = described.get("train") or next(iter(described.values()), None)
            case events.StepBegun(of, done, _, _):
                record["progress"][of] = done
            case events.Compiled(of, costs) | events.StepEnded(of, _, costs):
                record["ledger"]["steps"][of] = dict(costs)
                self.write()
            case events.Reported(of, step, _, metrics, elapsed_s, _):
                record["progress"][of] = step
                record["metrics"][of] = dict(metrics)
                self._append({"step": step, "of": of, **metrics, "elapsed_s": elapsed_s})
                if time.monotonic() - self._written > WRITE_SECONDS:
                    self.write()
            case events.Recompiled(of, step, reason):
                record["warnings"].append(f"{of}: compiled again at step {step}: {reason}")
            case events.Warned(message):
                record["warnings"].append(message)
            case events.Judged(verdict, _):
                record["checks"] = [dataclasses.asdict(check) for check in verdict.checks]
                record["summary"] = verdict.summary
            case events.Ended(status, ledger, error):
                record |= {"status": status, "ledger": dict(ledger), "error": error}
                record["ended"] = time.strftime("%Y-%m-%dT%H:%M:%S%z")
                self.write()
            case _:
                pass

    def write(self) -> None:
        """Write ``run.json`` as things stand."""
        metrics, checks = self.record["metrics"], self.record["checks"]
        self.record["nonfinite"] = nonfinite(metrics) + nonfinite(
            {check["name"]: check["value"] for check in checks}, "checks"
        )
        self.directory.write_record(self.record)
        self._written = time.monotonic()

    def close(self) -> None:
        """Close ``metrics.jsonl``."""
        if self._rows is not None:
            self._rows.close()

    def _append(self, row: dict[str, Any]) -> None:
        if self._rows is None:
            path = self.directory.path / "metrics.jsonl"
            self._rows = path.open("a", encoding="utf-8", newline="\n")
        self._rows.write(to_json(row) + "\n")
        self._rows.flush()
