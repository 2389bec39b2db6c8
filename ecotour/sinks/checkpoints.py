"""The sink that saves states: copied at once, written by a thread while the run goes on."""

from __future__ import annotations

import hashlib
import math
import shutil
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecotour.contract import events
from ecotour.errors import CheckpointError
from ecotour.rundir.checkpoint import KEEP, Store, size_of
from ecotour.rundir.frozen import Frozen, freeze

if TYPE_CHECKING:
    from ecotour.contract.demo import Dataset


class Checkpoints:
    """Saves each snapshot. A snapshot that comes while one is waiting takes its place.

    Orbax is imported with the first one (it takes seconds), by the thread that writes. After a
    step that is not compiled the run waits for it, since such a step may be measuring.
    """

    def __init__(
        self,
        run_dir: Path,
        identity: Mapping[str, Any],
        warn: Callable[[str], None],
        reshaped: Mapping[str, bool] | None = None,
    ) -> None:
        """Save into ``run_dir``.

        Args:
            run_dir: The run's directory.
            identity: Whose the states are; written beside each of them.
            warn: Called, also from another thread, with a line on what could not be saved.
            reshaped: By named step, whether its state's shapes have changed since its ``init``.
        """
        self._store, self._run_dir = Store(run_dir), run_dir
        self._identity, self._warn = dict(identity), warn
        self._reshaped = dict(reshaped or {})
        self._datasets: Mapping[str, Dataset] = {}
        self._compiled: dict[str, bool] = {}
        self._waiting: dict[str, tuple[int, Frozen, dict[str, Any]]] = {}
        self._obstacles: set[str] = set()
        self._change = threading.Condition()
        self._busy = self._closed = False
        self._thread: threading.Thread | None = None

    def __call__(self, event: events.Event) -> None:
        """Take note of ``event``."""
        match event:
            case events.DataReady(_, _, datasets):
                self._datasets = datasets
            case events.StepBegun(of, _, _, _, state_bytes, compiled):
                self._compiled[of] = compiled
                self._look_for_room(of, state_bytes)
            case events.Recompiled(of, _, _):
                self._reshaped[of] = True
            case events.Snapshot(of, step, state, metrics, _):
                self._take(of, step, freeze(state), metrics)
            case events.Ended():
                self.wait()
            case _:
                pass

    def wait(self) -> None:
        """Return when all that was taken is written."""
        with self._change:
            self._change.wait_for(lambda: not self._waiting and not self._busy)

    def close(self) -> None:
        """Write what is left, and end the thread."""
        self.wait()
        with self._change:
            self._closed = True
            self._change.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _take(self, of: str, step: int, frozen: Frozen, metrics: Mapping[str, float]) -> None:
        if frozen.obstacle:
            if of not in self._obstacles:
                self._obstacles.add(of)
                self._warn(
                    f"the state of {of} cannot be saved, since {frozen.obstacle}: a resumed run "
                    f"does {of} anew"
                )
            return
        about = {
            "reshaped": self._reshaped.get(of, False),
            "finite": all(math.isfinite(value) for value in metrics.values()),
        }
        with self._change:
            self._waiting[of] = (step, frozen, about)
            if self._thread is None:
                # a daemon, since whoever forgets to close must not hang; writing is atomic
                self._thread = threading.Thread(
                    target=self._work, name="ecotour checkpoints", daemon=True
                )
                self._thread.start()
            self._change.notify_all()
        if not self._compiled.get(of, True):
            self.wait()

    def _work(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
                of = next(iter(self._waiting))
                step, frozen, about = self._waiting.pop(of)
                self._busy = True
            try:
                self._write(of, step, frozen, about)
            except CheckpointError as error:
                self._warn(f"{error}; the run goes on, and earlier checkpoints are kept")
            except Exception as error:  # noqa: BLE001 - must not leave anybody waiting
                self._warn(f"{of}: no checkpoint at step {step}: {type(error).__name__}: {error}")
            finally:
                with self._change:
                    self._busy = False
                    self._change.notify_all()

    def _write(self, of: str, step: int, frozen: Frozen, about: dict[str, Any]) -> None:
        if self._datasets:
            self._identity["data"] = {n: fingerprint(one) for n, one in self._datasets.items()}
            self._datasets = {}
        about["finite"] = about["finite"] and not frozen.has_nan()
        self._store.save(of, step, frozen, self._identity | about)

    def _look_for_room(self, of: str, state_bytes: int) -> None:
        needed = (KEEP + 1) * state_bytes
        free = shutil.disk_usage(self._run_dir).free
        if free < needed:
            self._warn(
                f"{self._run_dir}: {size_of(free)} are free, and the checkpoints of {of} need up "
                f"to {size_of(needed)}: make room"
            )


def fingerprint(dataset: Dataset) -> dict[str, Any]:
    """What a dataset says of itself, and the SHA-256 of its arrays."""
    import dataclasses

    import numpy as np

    digest = hashlib.sha256()
    for name in sorted(dataset.arrays):
        array = np.ascontiguousarray(dataset.arrays[name])
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return dataclasses.asdict(dataset.info) | {"sha256": digest.hexdigest()}
