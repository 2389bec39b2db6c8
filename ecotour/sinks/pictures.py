"""The sink that keeps what a demo shows: JSON at once, pictures when the run is over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ecotour.contract import events
from ecotour.contract.exhibits import Exhibit
from ecotour.drawing.pictures import draw, said, where
from ecotour.rundir import exhibit_json, record
from ecotour.rundir.stored_exhibits import digest, slug, write_json


class Pictures:
    """Stores each exhibit as it comes and draws them all at the end.

    One that cannot be stored or drawn costs itself and no other.
    """

    def __init__(self, run_dir: Path, warn: Callable[[str], None]) -> None:
        """Keep the exhibits of the run in ``run_dir``.

        Args:
            run_dir: The run's directory.
            warn: Called with a line on each exhibit that had to be left out.
        """
        self._run_dir, self._warn = run_dir, warn
        self._taken: dict[str, tuple[str | None, str]] = {}
        self._left_out: set[tuple[str | None, str]] = set()

    def __call__(self, event: events.Event) -> None:
        """Take note of ``event``."""
        match event:
            case events.Viewed(of, step, exhibits):
                self._store_all(of, step, exhibits)
            case events.Judged(verdict, _):
                self._store_all(None, None, verdict.exhibits)
            case events.Ended():
                for line in draw(self._run_dir):
                    self._warn(line)
            case _:
                pass

    def close(self) -> None:
        """Nothing is left open."""

    def _store_all(self, of: str | None, step: int | None, exhibits: Mapping[str, Exhibit]) -> None:
        for place, (name, exhibit) in enumerate(exhibits.items()):
            try:
                self._store(of, name, step, place, exhibit)
            except Exception as error:  # noqa: BLE001 - a demo's array may raise anything
                if (of, name) not in self._left_out:
                    self._left_out.add((of, name))
                    self._warn(f"{where(of, step)}: {said(error, name)}: it is left out")

    def _store(
        self, of: str | None, name: str, step: int | None, place: int, exhibit: Exhibit
    ) -> None:
        document = {
            "schema": record.SCHEMA,
            "of": of,
            "name": str(name),
            "step": step,
            "place": place,
            "exhibit": exhibit_json.to_json(exhibit, str(name)),
        }
        stem = slug(name) if of is None else f"{slug(of)}-{slug(name)}"
        if self._taken.setdefault(stem, (of, name)) != (of, name):
            stem += "_" + digest(f"{of}\n{name}")  # two names that only differ in their signs
        if step is not None:
            stem += f"-{step:08d}"
        write_json(self._run_dir / "exhibits" / f"{stem}.json", document)
