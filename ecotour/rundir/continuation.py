"""What of an earlier run can be gone on with: the newest good checkpoints and the rows up to them.

Everything that a resumed run must share with the one that it continues is compared here; what
does not match is refused in one line that says what was found and what is needed.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ecotour.contract import flags
from ecotour.contract.demo import State
from ecotour.contract.events import NOT_METRICS
from ecotour.contract.plan import Plan
from ecotour.errors import CheckpointError, RecordError, UsageError
from ecotour.machine import environment
from ecotour.rundir import record as records
from ecotour.rundir.checkpoint import Store
from ecotour.rundir.files import write_whole
from ecotour.rundir.frozen import Saved, thaw
from ecotour.rundir.metric_rows import iterate_rows
from ecotour.rundir.strict_json import to_json
from ecotour.running.history import History
from ecotour.running.runner import Resume

SAME = ("demo", "distribution", "config", "seed", "x64", "matmul_precision")
"""Of a checkpoint's identity, what must be as it was; the rest is said and no more."""


@dataclass(frozen=True)
class Continuation:
    """Where and how to go on.

    Attributes:
        resume: For the runner.
        reshaped: By named step, whether its state's shapes have changed since its ``init``.
        data: The fingerprints of the datasets that the checkpoints were made with, by name.
        remarks: What was skipped and why, a line each.
    """

    resume: Resume
    reshaped: Mapping[str, bool] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


def identity(plan: Plan) -> dict[str, Any]:
    """Whose a checkpoint is, as JSON has it. Reads JAX's settings."""
    import json

    import jax

    from ecotour.machine.version import __version__

    made = {
        "schema": records.SCHEMA,
        "ecotour": __version__,
        "demo": plan.demo,
        "distribution": plan.distribution if plan.source_file is None else None,
        "source_hash": plan.source_hash,
        "config": flags.plain(plan.config),
        "seed": plan.seed,
        "x64": environment.x64(),
        "matmul_precision": environment.matmul_precision(),
        "jax": jax.__version__,
        "backend": jax.default_backend(),
        "devices": jax.device_count(),
    }
    result: dict[str, Any] = json.loads(to_json(made))
    return result


def find(
    run_dir: Path, record: Mapping[str, Any], plan: Plan, totals: Mapping[str, int]
) -> Continuation:
    """Choose a checkpoint for each named step, and read the rows that belong before it.

    Args:
        run_dir: The run's directory as it is called now.
        record: What its ``run.json`` holds.
        plan: What is asked for now.
        totals: By named step, in the program's order, how many steps are asked for now.

    Raises:
        RecordError: The rows cannot be written.
        CheckpointError: A checkpoint was made by another demo, configuration, seed or precision.
        UsageError: More steps are done than asked for.
    """
    store, mine = Store(run_dir), identity(plan)
    store.clean()
    remarks: list[str] = []
    chosen: dict[str, Saved] = {}
    for of in totals:
        saved = _newest(store, of, remarks)
        if saved is not None:
            _compare(saved.about, mine, run_dir, remarks)
            if saved.about["step"] > totals[of]:
                raise UsageError(
                    f"{of} has already done {saved.about['step']:,} steps: --steps must be at "
                    "least that"
                )
            chosen[of] = saved
    done = {of: int(saved.about["step"]) for of, saved in chosen.items()}
    log_every = {of: int(n) for of, n in (record.get("log_every") or {}).items()}
    history, elapsed_s = _rows(run_dir, totals, done, log_every, remarks)
    for of in totals:
        store.drop_after(of, done.get(of, 0))

    def restore(of: str, template: State) -> State:
        saved = chosen[of]
        return thaw(saved, template, reshaped=bool(saved.about.get("reshaped")))

    return Continuation(
        Resume(
            done,
            restore,
            history,
            elapsed_s,
            copy.deepcopy(record.get("ledger") or {}),  # the record goes on to change its own
            log_every,
        ),
        {of: bool(saved.about.get("reshaped")) for of, saved in chosen.items()},
        next((saved.about.get("data") or {} for saved in chosen.values()), {}),
        tuple(remarks),
    )


def _newest(store: Store, of: str, remarks: list[str]) -> Saved | None:
    skipped = []
    for step in reversed(store.steps(of)):
        try:
            saved = store.load(of, step)
        except CheckpointError as error:
            skipped.append(str(error))
            continue
        if saved.about.get("of") == of and saved.about.get("step") == step:
            remarks += [f"{line}: going on from step {step}" for line in skipped]
            return saved
        skipped.append(f"the checkpoint of {of} at step {step} is not what its place says")
    remarks += [f"{line}: {of} starts anew" for line in skipped]
    return None


def _compare(
    about: Mapping[str, Any], mine: Mapping[str, Any], run_dir: Path, remarks: list[str]
) -> None:
    for key in SAME:
        was, now = about.get(key), mine[key]
        if was != now:
            if isinstance(was, Mapping) and isinstance(now, Mapping):
                key, was, now = next(
                    (f"{key} {name}", was.get(name), now.get(name))
                    for name in {**was, **now}
                    if was.get(name) != now.get(name)
                )
            raise CheckpointError(
                f"{run_dir} was made with {key.replace('_', ' ')} {was!r}, and this is {now!r}"
            )
    for key, what in (
        ("source_hash", "the demo's source"),
        ("jax", "JAX"),
        ("backend", "the backend"),
        ("devices", "the number of devices"),
        ("ecotour", "ecotour"),
    ):
        if about.get(key) != mine[key]:
            change = "" if key == "source_hash" else f" from {about.get(key)} to {mine[key]}"
            line = f"{what} has changed{change} since: the numbers may not be those of one run"
            if line not in remarks:
                remarks.append(line)


def _rows(
    run_dir: Path,
    totals: Mapping[str, int],
    done: Mapping[str, int],
    log_every: Mapping[str, int],
    remarks: list[str],
) -> tuple[dict[str, History], dict[str, float]]:
    """Rewrite ``metrics.jsonl`` with the rows that the whole run has up to its checkpoints."""
    kept: dict[str, list[dict[str, Any]]] = {of: [] for of in totals}
    history = {of: History() for of in totals}
    elapsed_s: dict[str, float] = {}
    for row in iterate_rows(run_dir, remarks):
        of, step = row["of"], row["step"]
        every = log_every.get(of, 1)
        if (
            of in totals
            and history[of].last_step < step <= done.get(of, 0)
            and (step % every == 0 or step in (1, totals[of]))
        ):
            kept[of].append(row)
            strange = row.get("nonfinite") or {}
            metrics = {n: v for n, v in row.items() if n not in NOT_METRICS}
            history[of].append(step, metrics | {n: float(v) for n, v in strange.items()})
            elapsed_s[of] = float(row.get("elapsed_s") or 0.0)
    for of in totals:
        every = log_every.get(of, 1)
        expected = done.get(of, 0) // every + (every > 1 and done.get(of, 0) >= 1)
        expected += done.get(of, 0) == totals[of] and totals[of] % every != 0 and totals[of] > 1
        if len(history[of]) < expected:
            remarks.append(
                f"{run_dir / 'metrics.jsonl'} lacks {expected - len(history[of])} of the "
                f"{expected} rows of {of} up to step {done[of]}"
            )
    lines = [to_json(row) + "\n" for rows in kept.values() for row in rows]
    content, file = "".join(lines).encode(), run_dir / "metrics.jsonl"
    try:
        if not file.exists() or file.read_bytes() != content:
            write_whole(file, content, durable=True)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise RecordError(f"cannot write {file} ({len(content):,} bytes): {why}") from error
    return history, elapsed_s
