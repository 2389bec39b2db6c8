"""The figures of all benchmarks in one form: what, against what, how they compare, what is wanted.

A row's ``ratio`` has its median and the quartiles (or the extremes, where there are few turns); its
``want`` is text for people. Nothing here judges: a machine that is busy cannot be told from code
that is slow.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Row(NamedTuple):
    """One line of the table."""

    what: str
    against: str
    ours: str
    theirs: str
    ratio: float
    low: float | None
    high: float | None
    want: str


def rows(found: dict[str, Any]) -> list[Row]:
    """Every row that was measured, in the order of the table."""
    makers = {
        "gan_step": _gan_step,
        "runner_overhead": _runner,
        "catch_steps": _catch,
        "startup": _startup,
        "peak_memory": _memory,
        "ledger_adds_up": _ledger,
        "gan_gpu": _gan_gpu,
    }
    return [row for name, make in makers.items() if name in found for row in make(found[name])]


def _gan_step(found: dict[str, Any]) -> list[Row]:
    names = {
        "haiku": ("the same network in plain Haiku", "at most 0.25"),
        "torch": ("PyTorch eager", "at most 1.0"),
        "torch_channels_last": ("PyTorch eager, channels last", "at most 1.0"),
    }
    ours = found["ms"]["ecotour"]["median"]
    compared = [
        Row("GAN step, batch 64", against, f"{ours:.1f} ms",
            f"{found['ms'][name]['median']:.1f} ms", ratio["median"], ratio["p25"], ratio["p75"],
            want)
        for name, (against, want) in names.items()
        if (ratio := found["ratios"].get(name))
    ]  # fmt: skip
    rate, peak = found["useful_gflop"] / ours * 1e3, found["matrix_product_gflops"]
    share = found["share_of_matrix_product"]
    return [
        *compared,
        Row("GAN step, useful arithmetic", "XLA's product of two 2048 x 2048 matrices",
            f"{rate:.0f} GFLOP/s", f"{peak:.0f} GFLOP/s", share, None, None, "at least 0.60"),
    ]  # fmt: skip


def _runner(found: dict[str, Any]) -> list[Row]:
    want = {"GAN": "at most 1.02"}
    return [
        Row(f"{name}, driven by the runner", "the same compiled step in a bare loop",
            _microseconds(one["runner_us"]), _microseconds(one["bare_us"]),
            one["ratio"], *one["ratio_low_high"], want.get(name, "at most 1.10"))
        for name, one in found.items()
    ]  # fmt: skip


def _catch(found: dict[str, Any]) -> list[Row]:
    names = {
        "gymnax": "gymnax's Catch, as its documentation drives it",
        "gymnax_drawn_before": "gymnax's Catch, random numbers drawn as ours",
    }
    rates = found["steps_per_s"]
    return [
        Row("Catch with its agent, fused", names[name],
            f"{rates['ecotour']['median'] / 1e6:.2f} M steps/s",
            f"{rates[name]['median'] / 1e6:.2f} M steps/s",
            ratio["median"], ratio["p25"], ratio["p75"], "at least 1.0")
        for name, ratio in found["ratios"].items()
    ]  # fmt: skip


def _startup(found: dict[str, Any]) -> list[Row]:
    made = []
    for name, one in found.items():
        light = "import_rich_s" in one
        theirs = one["import_rich_s" if light else "import_libraries_s"]
        against = "import rich" if light else "import jax, haiku, optax; jax.devices()"
        made.append(
            Row(name, against, f"{1e3 * one['s']:.0f} ms", f"{1e3 * theirs:.0f} ms", one["ratio"],
                None, None, "at most 2" if light else "at most 1.6")
        )  # fmt: skip
    return made


def _memory(found: dict[str, Any]) -> list[Row]:
    ours, theirs = (found[name] / 2**20 for name in ("run_bytes", "bare_loop_bytes"))
    return [
        Row("run gan, peak memory", "a bare loop", f"{ours:.0f} MiB", f"{theirs:.0f} MiB",
            found["ratio"], None, None, "at most 1.25")
    ]  # fmt: skip


def _ledger(found: dict[str, Any]) -> list[Row]:
    more, steady = found["wall_2N_less_wall_N_s"], found["N_steady_steps_s"]
    wall = found["wall_s"]
    return [
        Row("wall time of 2N steps less that of N", "N reported steady steps", f"{more:.1f} s",
            f"{steady:.1f} s", found["ratio"], None, None, "0.85 to 1.15"),
        Row("sum of the ledger's phases", "wall time of the process",
            f"{found['phases_share_of_wall'] * wall:.1f} s", f"{wall:.1f} s",
            found["phases_share_of_wall"], None, None, "0.90 to 1.10"),
    ]  # fmt: skip


def _gan_gpu(found: dict[str, Any]) -> list[Row]:
    names = {
        "haiku": "the same network in plain Haiku",
        "torch": "PyTorch eager",
        "torch_channels_last": "PyTorch eager, channels last",
        "torch_compiled": "PyTorch compiled",
    }
    made = []
    for pair, ratio in found.get("ratios", {}).items():
        ours, _, theirs = pair.partition(" / ")
        what = "GAN step on a GPU" + (", ten fused" if ours == "ecotour_fused" else "")
        times = (f"{found['ms'][name]['median']:.2f} ms" for name in (ours, theirs))
        made.append(
            Row(what, names[theirs], *times, ratio["median"], ratio["p25"], ratio["p75"],
                "none yet")
        )  # fmt: skip
    return made


def _microseconds(value: float) -> str:
    return f"{value / 1e3:.1f} ms" if value >= 1e4 else f"{value:.1f} µs"


def text(table: list[Row]) -> str:
    """The table for a terminal, two lines a row."""
    lines = []
    for row in table:
        spread = "" if row.low is None else f"  ({row.low:.3f} to {row.high:.3f})"
        lines += [
            f"{row.what}  /  {row.against}",
            f"    {row.ours}  /  {row.theirs}  =  {row.ratio:.3f}{spread}   wanted: {row.want}",
        ]
    return "\n".join(lines)
