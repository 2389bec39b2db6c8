"""From a run's directory to a record for the documentation."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

from ecotour import drawing
from ecotour.contract.exhibits import Code, Exhibit, Film, Images, Table
from ecotour.drawing import figures, look, page, pictures
from ecotour.errors import RecordError
from ecotour.rundir import record
from ecotour.rundir.files import write_whole
from ecotour.rundir.metric_rows import read_rows
from ecotour.rundir.stored_exhibits import Stored, read_exhibits, slug
from ecotour.rundir.strict_json import to_json
from ecotour.trust import budget
from ecotour.trust.identity import Identity
from ecotour.trust.records import KIND, SCHEMA, Shown, read

LARGEST_SVG = 120_000
Drawn: TypeAlias = dict[str, tuple[Exhibit, float]]
"""What was drawn, by its file's stem, and for which width in inches."""
DIGEST_DIGITS = 16
"""Of the digest of a leaf, so many hexadecimal digits are kept."""
MOMENTS = 5
"""Of what a demo shows along the way, so many pictures are kept, the last among them."""
FIRST_ROWS = 12
MOST_ROWS = (24, 12, 6)
"""Rows kept of each named step: the first ones, for comparisons, and an even selection of as many
as there is room for.
"""

_KEPT_AS_IT_IS = (
    "demo", "distribution", "seed", "config", "steps_asked", "totals", "log_every", "data",
    "datasets", "notes", "ledger", "metrics", "guides", "checks", "nonfinite",
    "warnings", "unshown",
)  # fmt: skip
_PATH = re.compile(
    r"""(?<![\w.:/<])/(?:[\w.@+~-]+/)+([\w.@+~-]+)|[A-Z]:\\(?:[^\\\s"']+\\)+([^\\\s"']+)"""
)


def keep(run_dir: Path, target: Path, identity: Identity) -> tuple[Path, list[str]]:
    """Make a record of a finished run; one of the same demo that was there is replaced.

    Args:
        run_dir: The run's directory; it is only read (pictures are drawn anew).
        target: The record's directory.
        identity: What the demo is now: its flags, source and shapes.

    Returns:
        ``target``, and a line on everything that had to be left out.

    Raises:
        RecordError: The run is not finished, ``target`` is something else, or cannot be written.
    """
    known = record.read(run_dir)
    if known.get("status") != "finished":
        raise RecordError(f"{run_dir} is {known.get('status')}: only a finished run can be kept")
    if known.get("demo") != identity.name:
        raise RecordError(f"{run_dir} is a run of {known.get('demo')!r}, not of {identity.name!r}")
    made_from = known.get("source_hash")
    if made_from and made_from != identity.source_hash:
        raise RecordError(
            f"{run_dir} was made by another source than the one that is installed now, which the "
            f"page would show beside it: `ecotour record {identity.name}` runs it again"
        )
    _refuse_what_is_no_record(target, identity.name)
    fresh = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        fresh.mkdir(parents=True)
        remarks = _fill(fresh, run_dir, known, identity)
        _swap(fresh, target)
    except OSError as error:
        raise RecordError(f"cannot write {target}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return target, remarks


def scrub(value: Any) -> Any:
    """``value`` with every absolute path in its texts cut down to its last part."""
    if isinstance(value, str):
        return _PATH.sub(lambda found: f"…/{found[1] or found[2]}", value)
    if isinstance(value, Mapping):
        return {scrub(str(key)): scrub(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [scrub(item) for item in value]
    return value


def scrub_svg(text: str) -> str:
    """The same for a drawing, whose embedded pixels must stay as they are."""
    return "".join(
        part if part.startswith('"data:') else scrub(part)
        for part in re.split(r'("data:[^"]*")', text)
    )


def _fill(fresh: Path, run_dir: Path, known: Mapping[str, Any], identity: Identity) -> list[str]:
    remarks: list[str] = []
    file = identity.file
    rows, damaged = read_rows(run_dir)
    stored = list(read_exhibits(run_dir, damaged))
    remarks += damaged
    for most in MOST_ROWS:
        lines = [to_json(scrub(row)) + "\n" for row in _thinned(rows, most)]
        content = "".join(lines).encode()
        if len(content) <= budget.ROOM_FOR_ROWS:
            break
    write_whole(fresh / "metrics.jsonl", content)
    drawn: Drawn = {}
    shown = [*_metrics(fresh, run_dir, drawn), *_exhibits(fresh, stored, drawn)]

    def redraw(stem: str, suffix: str) -> bytes:
        exhibit, width = drawn[stem]
        if suffix == ".png":
            return drawing.png(exhibit)
        return scrub_svg(drawing.svg(exhibit, width, 0)).encode()

    shown, dropped = budget.fit(fresh, shown, redraw)
    remarks += [f"left out, lest the record be too large: {what}" for what in dropped]
    if not known.get("source_hash"):
        remarks.append(f"{run_dir} does not say of which source it is a run")
    document = {
        "schema": SCHEMA,
        "kind": KIND,
        **{key: known.get(key) for key in _KEPT_AS_IT_IS},
        "digests": _short(known.get("digests") or {}),
        "about": identity.summary,
        "teaches": identity.teaches,
        "flags": identity.flags,
        "module": identity.module,
        "file": file and _beside(file, fresh),
        "sources": identity.sources,
        "shapes": identity.shapes,
        "summary": known.get("summary") or "",
        "recorded": str(known.get("ended") or known.get("started") or "")[:10],
        "command": page.repeat_command(
            dict(known) | {"source_file": file and file.name, "data_dir": None}
        ),
        "environment": _environment(known.get("environment") or {}),
        "left_out": dropped,
        "exhibits": [{k: v for k, v in asdict(one).items() if v} for one in shown],
    }
    text = to_json(scrub(document), indent=1) + "\n"
    write_whole(fresh / "record.json", text.encode())
    if budget.size(fresh) > budget.BUDGET:
        remarks.append(f"the record is larger than {budget.BUDGET / 1000:g} kB: show less")
    return remarks


def _short(digests: Mapping[str, Any]) -> dict[str, Any]:
    """Digests cut to what tells two states apart; whole they would take a tenth of a record."""
    return {
        of: one | {"leaves": {k: v[:DIGEST_DIGITS] for k, v in one["leaves"].items()}}
        for of, one in digests.items()
    }


def _beside(file: Path, record_dir: Path) -> str:
    """``file`` as seen from the record; its name alone where only the file system's root is common.

    So a record of a demo elsewhere does not tell where that is.
    """
    here = record_dir.resolve()
    if not {*file.parents} & {*here.parents} - {Path(file.anchor)}:
        return file.name
    return Path(os.path.relpath(file, here)).as_posix()


def _environment(found: Mapping[str, Any]) -> dict[str, Any]:
    """Versions and hardware; of the system its kind alone, since its build is nobody's business."""
    kind = str(found.get("platform") or platform.system()).split("-")[0]
    machines = ("x86_64", "aarch64", "arm64", "AMD64")
    machine = next((one for one in machines if one in str(found.get("platform"))), "")
    return dict(found) | {"platform": f"{kind} {machine}".strip()}


def _thinned(rows: Sequence[Mapping[str, Any]], most: int) -> list[dict[str, Any]]:
    """The first rows and an even selection of the others, without the clock's part in them."""
    by_step: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_step.setdefault(str(row["of"]), []).append(row)
    return [
        {key: _rounded(value) for key, value in row.items() if key != "elapsed_s"}
        for one in by_step.values()
        for row in [*one[:FIRST_ROWS], *pictures.spaced(one[FIRST_ROWS:], most)]
    ]


def _rounded(value: Any) -> Any:
    """A float in nine digits, which tell any two float32 apart."""
    return float(f"{value:.9g}") if isinstance(value, float) else value


def _metrics(fresh: Path, run_dir: Path, drawn: Drawn) -> list[Shown]:
    panels, _ = pictures.read_panels(run_dir)
    across = {curves.y_label for each in panels if each.of is None for curves in each.curves}
    shown = []
    for each in panels:
        if each.of is not None and {curves.y_label for curves in each.curves} <= across:
            continue  # the comparison of all named steps says the same
        for curves in each.curves:
            stems = map(slug, ("metrics", each.of or "across steps", curves.y_label))
            stem = "-".join(stems)
            drawn[stem] = curves, figures.HALF
            file = _draw(fresh, stem, curves, figures.HALF)
            caption = curves.caption or each.caption
            shown.append(Shown(curves.y_label, "metrics", caption, of=each.of, file=file))
    return shown


def _exhibits(fresh: Path, stored: Sequence[Stored], drawn: Drawn) -> list[Shown]:
    shown = []
    for one in stored:
        same = [o for o in stored if (o.of, o.name) == (one.of, one.name)]
        kept = pictures.spaced(same, MOMENTS) if isinstance(one.exhibit, Images) else same[-1:]
        if not any(one is chosen for chosen in kept):
            continue
        exhibit = one.exhibit
        common: dict[str, Any] = {"of": one.of, "step": one.step, "caption": exhibit.caption}
        role = "verdict" if one.step is None else "view"
        if isinstance(exhibit, Table):
            table = {"columns": list(exhibit.columns), "rows": [list(row) for row in exhibit.rows]}
            shown.append(Shown(one.name, role, table=table, **common))
        elif isinstance(exhibit, Code):
            text, language = exhibit.text, exhibit.language
            shown.append(Shown(one.name, role, code=text, language=language, **common))
        else:
            pixelated = isinstance(exhibit, Images | Film)
            drawn[one.path.stem] = exhibit, look.WIDTH
            file = _draw(fresh, one.path.stem, exhibit, look.WIDTH)
            shown.append(Shown(one.name, role, file=file, pixelated=pixelated, **common))
    return shown


def _draw(fresh: Path, stem: str, exhibit: Any, width: float) -> str:
    """Draw ``exhibit`` into the record, in the smallest form that looks right; its file's name."""
    if isinstance(exhibit, Film):
        content, suffix = drawing.gif(exhibit), "gif"
    elif isinstance(exhibit, Images):
        from ecotour.drawing import pixels

        # each pixel once: a page enlarges them; a label needs room for its letters
        target = 600 if exhibit.labels is not None else 1
        content, suffix = pixels.grid_png(exhibit, target), "png"
    else:
        content, suffix = scrub_svg(drawing.svg(exhibit, width, LARGEST_SVG)).encode(), "svg"
    write_whole(fresh / f"{stem}.{suffix}", content)
    return f"{stem}.{suffix}"


def _refuse_what_is_no_record(target: Path, demo: str) -> None:
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    there = read(target).document.get("demo")  # says so if it is no record
    if there != demo:
        raise RecordError(f"{target} is a record of {there!r}: choose another --records")


def _swap(fresh: Path, target: Path) -> None:
    """Put ``fresh`` in the place of ``target``: what was there goes only when all is there."""
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    if target.exists():
        target.rename(old)
    try:
        fresh.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)
