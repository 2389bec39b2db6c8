"""The ledger as parts that add up: what the summary and the page show of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_SENTENCES = {
    "import": "Starting Python and importing the libraries.",
    "data": "Reading the data into memory.",
    "init": "Making the state before step 1: parameters and optimizer states.",
    "trace": "Running the Python of the step once with abstract values, to get a jaxpr.",
    "lower": "Turning the jaxpr into StableHLO, the program that XLA takes.",
    "compile": "XLA making machine code of it, or fetching it from the compilation cache.",
    "first": "The first execution of each named step, which also pays for its warm-up.",
    "steady": "All further steps: the work itself.",
    "views": "Computing what is shown along the way.",
    "judging": "Measuring the result for the verdict.",
    "sinks": "Writing metrics and checkpoints, and drawing to the terminal.",
    "other": "What lies between these: moving data, deriving keys, waiting.",
}


@dataclass(frozen=True)
class Part:
    """One part of a run's time: its ``name`` (a key of `look.PARTS`) and its seconds."""

    name: str
    seconds: float
    sentence: str


def parts(ledger: Mapping[str, Any]) -> list[Part]:
    """The parts of a run's wall time in order; absent ones are left out.

    What the parts do not explain of ``total_s`` is ``other``, so that they add up to it.
    """
    steps = [costs for costs in (ledger.get("steps") or {}).values() if isinstance(costs, Mapping)]

    def over_steps(key: str) -> float | None:
        values = [_seconds(costs.get(key)) for costs in steps]
        known = [value for value in values if value is not None]
        return sum(known) if known else None

    first, loop = over_steps("first_s"), over_steps("loop_s")
    seconds = {
        "import": _seconds(ledger.get("import_s")),
        "data": _seconds(ledger.get("data_s")),
        "init": _seconds(ledger.get("init_s")),
        "trace": over_steps("trace_s"),
        "lower": over_steps("lower_s"),
        "compile": over_steps("compile_s"),
        "first": first,
        "steady": None if loop is None else max(0.0, loop - (first or 0.0)),
        "views": _seconds(ledger.get("view_s")),
        "judging": _seconds(ledger.get("judge_s")),
        "sinks": _seconds(ledger.get("sinks_s")),
    }
    known = {name: value for name, value in seconds.items() if value}
    total = _seconds(ledger.get("total_s"))
    if total is not None and total - sum(known.values()) > 0:
        known["other"] = total - sum(known.values())
    return [Part(name, value, _SENTENCES[name]) for name, value in known.items()]


def verdict(record: Mapping[str, Any]) -> str:
    """The verdict in a phrase: ``all 7 checks passed``, ``2 of 7 checks not passed``,
    ``too early to judge: 200 of 5,000 steps``.
    """
    checks = record.get("checks")
    if not checks:
        return "no verdict"
    results = [check.get("passed") for check in checks]
    failed, early = results.count(False), results.count(None)
    wait = f"too early to judge: {steps(record):,} of {horizon(record):,} steps" if early else ""
    if early == len(checks):
        return wait
    said = f"{failed} of {len(checks)} checks not passed"
    if not failed:
        said = f"{len(checks) - early} of {len(checks)} checks passed"
        if not early:
            said = "the check passed" if len(checks) == 1 else f"all {len(checks)} checks passed"
    return f"{said}, {early} {wait}" if early else said


def steps(record: Mapping[str, Any]) -> int:
    """The steps that a run was asked for, of its longest named step."""
    return max((record.get("totals") or {}).values(), default=record.get("steps") or 0)


def horizon(record: Mapping[str, Any]) -> int | None:
    """The steps that a run needs for those checks that it was too early for, if there are any."""
    early = [check for check in record.get("checks") or () if check.get("passed") is None]
    return max((check.get("horizon") or 0 for check in early), default=None)


def unshown(record: Mapping[str, Any]) -> list[str]:
    """For each named step whose view failed, after which steps."""
    lines = []
    for of, found in (record.get("unshown") or {}).items():
        some = ", ".join(f"{step:,}" for step in found[:3])
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        lines.append(f"{of}: its view failed after step {some}{more}")
    return lines


def data_lines(record: Mapping[str, Any]) -> list[str]:
    """One phrase for each dataset, as `ecotour.demo.DataInfo` words it."""
    from ecotour.contract.demo import DataInfo

    datasets = record.get("datasets")
    if not isinstance(datasets, Mapping) or not datasets:
        datasets = {"train": record.get("data")}
    lines = []
    for info in datasets.values():
        if not isinstance(info, Mapping):
            continue
        text = info.get("description")
        if not text:
            text = str(
                DataInfo(
                    str(info.get("name")),
                    str(info.get("source")),
                    str(info.get("split")),
                    int(info.get("examples") or 0),
                    info.get("full_examples"),
                )
            )
        if text not in lines:
            lines.append(str(text))
    return lines


def _seconds(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and value >= 0 else None


def origin(costs: Mapping[str, Any]) -> list[str]:
    """Where the compiled program of a named step came from, where that is worth saying."""
    if costs.get("compiled") is False:
        return ["not compiled"]
    times = costs.get("compiles") or 1
    cached = ["from the cache"] if costs.get("cache_hit") else []
    return cached + ([f"{times} times"] if times > 1 else [])
