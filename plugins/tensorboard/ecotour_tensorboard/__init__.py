"""A sink that writes TensorBoard event files: scalars, images, and where the time went.

The files are those of the TensorBoard documentation (records of ``Event`` protocol buffers),
written with tensorboardX, which needs neither TensorFlow nor TensorBoard.
"""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tensorboardX import SummaryWriter

import ecotour
from ecotour import drawing, events, exhibits
from ecotour.contract.plan import Plan
from ecotour.drawing import account, wording


class TensorBoard:
    """Writes what a run reports and shows into ``RUN/tensorboard``.

    Tags are ``STEP/METRIC`` for scalars and ``STEP/EXHIBIT`` for images, where STEP is a named
    step; what the judge shows is under ``verdict``, the parts of the account under ``account``.
    """

    def __init__(self, run_dir: Path, plan: Plan) -> None:
        """Write the run in ``run_dir``."""
        self._plan = plan
        self._step = 0
        self._writer = SummaryWriter(logdir=str(run_dir / "tensorboard"), flush_secs=10)

    def __call__(self, event: events.Event) -> None:
        """Take note of ``event``."""
        write = self._writer
        match event:
            case events.DataReady(info, _, _):
                write.add_text("run", self._description(info), 0)
            case events.Reported(of, step, _, metrics, _, step_ms):
                self._step = max(self._step, step)
                for name, value in metrics.items():
                    write.add_scalar(f"{of}/{name}", value, step)
                if step_ms is not None:
                    write.add_scalar(f"{of}/step_ms", step_ms, step)
            case events.Viewed(of, step, shown):
                for name, exhibit in shown.items():
                    self._picture(f"{of}/{name}", exhibit, step)
            case events.Judged(verdict, _):
                for name, exhibit in verdict.exhibits.items():
                    self._picture(f"verdict/{name}", exhibit, self._step)
                rows = [
                    f"| {c.name} | {c.value:g} | {c.want} | {wording.result(c.passed)} |"
                    for c in verdict.checks
                ]
                head = ["| check | value | wanted | passed |", "| --- | --- | --- | --- |"]
                write.add_text(
                    "verdict", "\n".join([verdict.summary, "", *head, *rows]), self._step
                )
            case events.Ended(_, ledger, _):
                self._account(ledger)
                write.flush()
            case _:
                pass

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()

    def _description(self, info: Mapping[str, Any]) -> str:
        config = dataclasses.asdict(self._plan.config)
        lines = [f"**{self._plan.demo}** of {self._plan.distribution}, seed {self._plan.seed}", ""]
        lines += [f"- {name}: {one}" for name, one in info.items()]
        lines += [f"- `{name}` = `{value}`" for name, value in config.items()]
        return "\n".join(lines)

    def _account(self, ledger: Mapping[str, Any]) -> None:
        """Where the time went, in seconds: a scalar for each part, and bars of all."""
        parts = account.parts(ledger)
        for part in parts:
            self._writer.add_scalar(f"account/{part.name}_s", part.seconds, self._step)
        for of, costs in (ledger.get("steps") or {}).items():
            for share, ms in (costs.get("steady_ms") or {}).items():
                if ms is not None:
                    self._writer.add_scalar(f"account/{of}_{share}_ms", ms, self._step)
        if parts:
            bars = exhibits.Bars(
                [part.name for part in parts],
                [part.seconds for part in parts],
                "Where the time of this run went.",
                y_label="seconds",
            )
            self._picture("account/seconds", bars, self._step)

    def _picture(self, tag: str, exhibit: exhibits.Exhibit, step: int) -> None:
        from PIL import Image

        try:
            picture = Image.open(io.BytesIO(drawing.png(exhibit))).convert("RGB")
        except Exception:  # noqa: BLE001 - the run's record says what is wrong with it
            return
        self._writer.add_image(tag, np.asarray(picture), step, dataformats="HWC")


@ecotour.hookimpl
def ecotour_sink(run_dir: Path, plan: Plan) -> TensorBoard:
    """Write event files for this run."""
    return TensorBoard(run_dir, plan)
