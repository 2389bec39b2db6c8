"""What stands on the report page, as plain values; the template only lays it out."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ecotour.contract import flags
from ecotour.contract.exhibits import Code, Film, Images, Table
from ecotour.drawing import account, look, wording
from ecotour.drawing.figures import HALF, SMALL, Picture, picture, svg_picture
from ecotour.drawing.metric_curves import Panels
from ecotour.drawing.pictures import SHOWN, spaced
from ecotour.rundir.stored_exhibits import Stored


@dataclass(frozen=True)
class Series:
    """One exhibit over the steps: a few earlier moments, and the last one large."""

    of: str
    name: str
    last_step: int
    last: Picture
    earlier: Sequence[tuple[int, Picture]] = ()


@dataclass(frozen=True)
class Account:
    """One row of the ledger's table; ``percent`` is the width of its piece of the bar."""

    name: str
    time: str
    share: str
    percent: float
    sentence: str


@dataclass(frozen=True)
class Page:
    """Everything that the template reads."""

    record: Mapping[str, Any]
    title: str
    state: str
    state_class: str
    verdict: str
    data: Sequence[str]
    facts: Sequence[tuple[str, str]]
    checks: Sequence[Mapping[str, Any]]
    curves: Sequence[tuple[Panels, Sequence[Picture]]]
    series: Sequence[Series]
    judged: Sequence[tuple[str, Picture]]
    best: Sequence[tuple[str, str, str, str]]
    ledger: Sequence[Account]
    costs: Sequence[Mapping[str, str]]
    command: str
    resume: str
    config: Sequence[tuple[str, str]]
    environment: Sequence[tuple[str, str]]
    warnings: Sequence[str]
    nonfinite: Sequence[str]
    light: Mapping[str, str] = field(default_factory=lambda: look.LIGHT)
    dark: Mapping[str, str] = field(default_factory=lambda: look.DARK)
    part_colours: Mapping[str, str] = field(default_factory=lambda: look.PARTS)


def make(
    record: Mapping[str, Any],
    stored: Sequence[Stored],
    panels: Sequence[Panels],
    damaged: Sequence[str] = (),
) -> Page:
    """Gather the page of a run; a record that broke off early may lack almost everything."""
    checks = [check for check in record.get("checks") or () if isinstance(check, Mapping)]
    status = str(record.get("status") or "unknown")
    bad = status == "failed" or any(check.get("passed") is False for check in checks)
    good = status == "finished" and checks and not bad and not account.horizon(record)
    return Page(
        record=record,
        title=str(record.get("demo") or "unnamed run"),
        state=status,
        state_class="bad" if bad else "good" if good else "open",
        verdict=account.verdict(record),
        data=account.data_lines(record),
        facts=_facts(record),
        checks=[
            {
                "name": check.get("name"),
                "want": wording.wanted(check),
                "shown": wording.number(check.get("value")),
                "passed": check.get("passed"),
            }
            for check in checks
        ],
        curves=[(each, _side_by_side(each)) for each in _chosen(panels)],
        series=_series(stored),
        judged=[(one.name, picture(one)) for one in stored if one.step is None],
        best=_best(record),
        ledger=_ledger(record),
        costs=_costs(record),
        command=repeat_command(record),
        resume=_resume_command(record),
        config=[(_flag(key), _text(value)) for key, value in (record.get("config") or {}).items()],
        environment=[(k, _text(v)) for k, v in (record.get("environment") or {}).items()],
        warnings=list(dict.fromkeys(_warnings(record, damaged))),
        nonfinite=_nonfinite(record),
    )


def repeat_command(record: Mapping[str, Any]) -> str:
    """The command that does the same again elsewhere, quoted for a shell."""
    demo = record.get("demo")
    if not demo:
        return ""
    words = ["ecotour", "run", str(record.get("source_file") or demo)]
    if record.get("steps_asked") is not None:
        words += ["--steps", str(record["steps_asked"])]
    words += ["--seed", str(record.get("seed") or 0)]
    source = (record.get("data") or {}).get("source")
    if source in ("embedded", "tfds"):
        words += ["--data", source]
    if was_eager(record):
        words.append("--eager")
    if record.get("data_dir"):
        words += ["--data-dir", str(record["data_dir"])]
    return shlex.join(words + flags.words(record.get("config") or {}))


def was_eager(record: Mapping[str, Any]) -> bool:
    """Whether a run compiled nothing, because of ``--eager`` or ``JAX_DISABLE_JIT``."""
    return bool((record.get("environment") or {}).get("disable_jit"))


def _resume_command(record: Mapping[str, Any]) -> str:
    words = ["ecotour", "resume", str(record.get("run_dir") or "RUN")]
    if record.get("status") != "finished":
        return shlex.join(words)
    horizon = account.horizon(record)
    return shlex.join([*words, "--steps", str(horizon)]) if horizon else ""


def _chosen(panels: Sequence[Panels]) -> list[Panels]:
    """Where several steps share all their metrics, the comparison says it all."""
    across = [each for each in panels if each.of is None]
    if not across:
        return list(panels)
    compared = {curves.y_label for curves in across[0].curves}
    own = [each for each in panels if each.of is not None]
    return across + [e for e in own if not {curves.y_label for curves in e.curves} <= compared]


def _side_by_side(panels: Panels) -> list[Picture]:
    width = {1: look.WIDTH, 2: HALF}.get(len(panels.curves), SMALL)  # three in a row
    if width == SMALL and any(len(curves.lines) > 1 for curves in panels.curves):
        width = HALF  # a legend needs room
    return [svg_picture(curves, width) for curves in panels.curves]


def _series(stored: Sequence[Stored]) -> list[Series]:
    groups: dict[tuple[str, str], list[Stored]] = {}
    for one in stored:
        if one.of is not None and one.step is not None:
            groups.setdefault((one.of, one.name), []).append(one)
    made = []
    for (of, name), items in groups.items():
        last = items[-1]
        earlier: list[tuple[int, Picture]] = []
        if not isinstance(last.exhibit, Table | Code | Film):
            most = SHOWN if isinstance(last.exhibit, Images) else SHOWN - 1
            earlier = [(e.step or 0, picture(e, small=True)) for e in spaced(items, most)[:-1]]
        made.append(Series(of, name, last.step or 0, picture(last), earlier))
    return made


def _warnings(record: Mapping[str, Any], damaged: Sequence[str]) -> list[str]:
    said = list(map(str, record.get("warnings") or ()))
    return [*said, *(f"Not shown: {line}." for line in account.unshown(record)), *damaged]


def _best(record: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """Named step, metric, best value, and the step at which it was reported."""
    return [
        (of, name, wording.number(found.get("value")), wording.number(found.get("step")))
        for of, metrics in (record.get("best") or {}).items()
        for name, found in metrics.items()
    ]


def _nonfinite(record: Mapping[str, Any]) -> list[str]:
    since = record.get("nonfinite_since") or {}
    found = [
        f"{name} of {of} since step {step:,}"
        for of, metrics in since.items()
        for name, step in metrics.items()
    ]
    known = {f"{of}.{name}" for of, metrics in since.items() for name in metrics}
    return found + [str(place) for place in record.get("nonfinite") or () if place not in known]


def _facts(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    ledger = record.get("ledger") or {}
    totals = record.get("totals") or {}
    progress = record.get("progress") or {}
    facts = []
    done, planned = sum(progress.values()), sum(totals.values())
    if planned:
        text = f"{planned:,}" if done == planned else f"{done:,} of {planned:,}"
        facts.append(("steps", text))
    elif record.get("steps"):
        facts.append(("steps", f"{record['steps']:,}"))
    if ledger.get("total_s") is not None:
        facts.append(("total time", wording.duration(ledger["total_s"])))
    steady = [
        (costs.get("steady_ms") or {}).get("p50") for costs in (ledger.get("steps") or {}).values()
    ]
    if len(steady) == 1 and steady[0] is not None:
        facts.append(("one step, median", wording.milliseconds(steady[0])))
    if ledger.get("to_first_step_s") is not None:
        facts.append(("until the first step", wording.duration(ledger["to_first_step_s"])))
    facts.append(("seed", str(record.get("seed", wording.UNKNOWN))))
    return facts


def _ledger(record: Mapping[str, Any]) -> list[Account]:
    parts = account.parts(record.get("ledger") or {})
    total = sum(part.seconds for part in parts)
    return [
        Account(
            part.name,
            wording.duration(part.seconds),
            wording.share(part.seconds, total),
            100 * part.seconds / total,
            part.sentence,
        )
        for part in parts
    ]


def _costs(record: Mapping[str, Any]) -> list[dict[str, str]]:
    rows = []
    for of, costs in ((record.get("ledger") or {}).get("steps") or {}).items():
        steady = costs.get("steady_ms") or {}
        rows.append(
            {
                "of": of,
                "trace": wording.duration(costs.get("trace_s")),
                "lower": wording.duration(costs.get("lower_s")),
                "compile": wording.duration(costs.get("compile_s")),
                "origin": ", ".join(account.origin(costs)),
                "first": wording.duration(costs.get("first_s")),
                "p50": wording.milliseconds(steady.get("p50")),
                "p95": wording.milliseconds(steady.get("p95")),
                "measured": wording.number(costs.get("measured")),
                "flops": wording.amount(costs.get("flops"), "FLOP"),
                "memory": wording.size(costs.get("peak_bytes")),
            }
        )
    return rows


def _flag(key: str) -> str:
    return "--" + str(key).replace("_", "-")


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(item)}" for key, item in value.items())
    return str(value) if isinstance(value, str | float | int) else wording.number(value)
