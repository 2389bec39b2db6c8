"""A made-up run with real digits: the events of a GAN without the GAN, for the tests of sinks."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ecotour import datasets, events
from ecotour.contract.plan import Plan, view_points
from ecotour.demo import Check, DataInfo, Program, Step, Verdict
from ecotour.exhibits import Bars, Images, Table

LN2 = math.log(2)
INFO = DataInfo("mnist", "embedded", "train", 10_000, 60_000)
GUIDES = {
    "disc_loss": (2 * LN2, "2·ln 2: the discriminator cannot tell"),
    "gen_loss": (LN2, "ln 2: it is taken for real half the time"),
}


@dataclasses.dataclass(frozen=True)
class Config:
    batch_size: int = 64
    learning_rate: float = 1e-4
    generator_channels: tuple[int, ...] = (32, 1)


def digits(count: int = 64) -> np.ndarray:
    """``uint8 [N, 28, 28]``: real test images."""
    found = datasets.load("mnist", "test", "embedded").arrays["image"][:count, ..., 0]
    return np.asarray(found)


def metrics(step: int, total: int) -> dict[str, float]:
    """Something like a GAN's losses, NaN for a stretch in the middle."""
    part = step / total
    wave = math.sin(37.0 * step) * 0.09
    disc = 2 * LN2 - 0.5 * math.exp(-6 * part) - 0.2 * math.sin(5 * part) + wave
    gen = LN2 + 0.7 * math.exp(-9 * part) + 0.15 * math.sin(7 * part) + wave / 2
    return {"gen_loss": gen, "disc_loss": math.nan if 0.50 < part < 0.53 else disc}


def samples(step: int, total: int) -> Images:
    """Real digits that come out of noise as the steps go by."""
    clean = digits() / 255.0
    noise = np.random.default_rng(0).random(clean.shape)
    share = math.sqrt(step / total)
    return Images(share * clean + (1 - share) * noise, "64 samples from the same latents")


def program(steps: int, names: tuple[str, ...] = ("update",)) -> Program:
    def refuse(*_: Any) -> Any:
        raise AssertionError("a sink called the demo")

    step = Step(refuse, refuse, steps, view=refuse, guides=GUIDES)
    notes = {"convolutions": "Winograd, F(4×4, 5×5)"}
    return Program(dict.fromkeys(names, step), refuse, notes=notes)


def costs(steps: int, loop_s: float) -> dict[str, Any]:
    return {
        "trace_s": 0.41,
        "lower_s": 0.12,
        "compile_s": 3.2,
        "cache_hit": False,
        "first_s": 0.35,
        "steady_ms": {"p50": 41.2, "p95": 47.9},
        "measured": steps - 1,
        "compiles": 1,
        "flops": 6.21e9,
        "peak_bytes": 94_371_840,
        "loop_s": loop_s,
    }


def verdict() -> Verdict:
    share = np.array([1031, 1120, 940, 987, 1012, 890, 978, 1044, 955, 1043])
    return Verdict(
        [
            Check.at_least("digits covered", 10, 9),
            Check.at_least("classifier score", 9.214, 8.0),
            Check.at_most("MNIST-FD", 11.87, 20.0),
            Check.at_most("near copies of training images (%)", 0.4, 0.1),
        ],
        {
            "digits of 10,000 samples": Bars(
                [str(n) for n in range(10)],
                share,
                "What the classifier takes the samples for.",
                y_label="samples",
                guides={"equal shares": 1000.0},
            ),
            "scores": Table(
                ["images", "classifier score", "digits covered", "MNIST-FD"],
                [
                    ["samples of this run", 9.214, 10, 11.87],
                    ["real test images", 9.87, 10, 0.9],
                    ["noise", 1.31, 1, 812.0],
                ],
                "The GAN between the best and the worst that can be measured.",
            ),
            "nearest": Images(
                digits(20), "Ten samples, and below each its nearest training image.", columns=10
            ),
        },
        "The samples cover all ten digits and score near real ones.",
    )


def run(
    steps: int = 5000,
    *,
    demo: str = "gan",
    names: tuple[str, ...] = ("update",),
    status: events.Status = "finished",
    until: float = 1.0,
) -> Iterator[events.Event]:
    """Yield what the runner yields; ``until`` is the share of the steps that are carried out."""
    plan = Plan(demo, f"ecotour-{demo} 0.1.0", Config())
    yield events.Started(plan, program(steps, names), dict.fromkeys(names, steps))
    yield events.DataReady({"train": INFO}, 0.31)
    every, views = plan.log_interval(steps), view_points(steps)
    last = int(steps * until)
    ledger: dict[str, Any] = {}
    for of in names:
        yield events.StepBegun(of, 0, steps, 1.2)
        yield events.Compiled(of, costs(steps, 0.0))
        yield events.Viewed(of, 0, {"samples": samples(0, steps)})
        for step in range(1, last + 1):
            if step % every == 0 or step in (1, steps):
                step_ms = None if step == 1 else 41.2
                yield events.Reported(of, step, steps, metrics(step, steps), 0.0412 * step, step_ms)
            if step in views:
                yield events.Viewed(of, step, {"samples": samples(step, steps)})
        ledger[of] = costs(steps, 0.0412 * last)
        yield events.StepEnded(of, last, ledger[of])
    yield events.Warned("metric 'disc_loss' of 'update' is nan at step 2520")
    if status == "finished":
        yield events.Judged(verdict(), 8.1)
    total = 20.0 + 0.0412 * last * len(names)
    error = f"{demo} failed: ValueError: made up" if status == "failed" else None
    yield events.Ended(
        status,
        {
            "import_s": 3.1,
            "data_s": 0.31,
            "init_s": 1.2,
            "view_s": 1.4,
            "judge_s": 8.1,
            "sinks_s": 0.9,
            "compile_s": 3.73,
            "loop_s": 0.0412 * last,
            "to_first_step_s": 9.0,
            "total_s": total,
            "steps": ledger,
        },
        error,
    )
