"""What was reported of a named step, column by column: 8 bytes a number, however long the run."""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ecotour.contract.demo import Series


class History:
    """The reports of one named step in order.

    The names are those of the first report; what a later one lacks is a NaN there.
    """

    def __init__(self) -> None:
        """Start with nothing reported."""
        self._steps = array("q")
        self._columns: dict[str, array[float]] = {}

    def __len__(self) -> int:
        """The number of reports."""
        return len(self._steps)

    @property
    def last_step(self) -> int:
        """The step that was reported last; 0 before the first."""
        return self._steps[-1] if self._steps else 0

    def append(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Add a report; a value that is no number (``None``) becomes NaN."""
        if not self._steps:
            self._columns = {name: array("d") for name in metrics}
        self._steps.append(step)
        for name, column in self._columns.items():
            value = metrics.get(name)
            column.append(value if isinstance(value, int | float) else math.nan)

    def extend(self, rows: Sequence[Mapping[str, Any]], but: Collection[str] = ()) -> None:
        """Add many reports: mappings with ``step`` and, but for the names in ``but``, metrics."""
        if not rows:
            return
        if not self._steps:
            self._columns = {name: array("d") for name in rows[0] if name not in but}
        self._steps.extend(row["step"] for row in rows)
        for name, column in self._columns.items():
            values = [row.get(name) for row in rows]
            try:
                column.frombytes(np.array(values, np.float64).tobytes())
            except (TypeError, ValueError):  # a value that is no number
                column.extend(v if isinstance(v, int | float) else math.nan for v in values)

    def series(self) -> dict[str, Series]:
        """``steps`` ``int64 [R]`` and ``values`` ``float64 [R]`` of each metric, as copies."""
        steps = np.array(self._steps, dtype=np.int64)
        return {
            name: Series(steps, np.array(column, dtype=np.float64))
            for name, column in self._columns.items()
        }

    def best(self, name: str, *, lower: bool) -> tuple[int, float] | None:
        """Step and value of the lowest, or highest, report of a metric that is finite; the first
        of equal ones. ``None`` where there is none.
        """
        values = np.array(self._columns.get(name, ()), dtype=np.float64)
        finite = np.flatnonzero(np.isfinite(values))
        if not len(finite):
            return None
        found = values[finite] if lower else -values[finite]
        place = int(finite[np.argmin(found)])
        return self._steps[place], float(values[place])

    def nonfinite_since(self) -> Iterator[tuple[str, int]]:
        """Each metric that was not finite at some report, with the step of the first one."""
        for name, column in self._columns.items():
            places = np.flatnonzero(~np.isfinite(np.array(column, dtype=np.float64)))
            if len(places):
                yield name, self._steps[int(places[0])]
