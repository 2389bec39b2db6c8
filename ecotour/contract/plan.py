"""What a run was asked to do, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

DataChoice: TypeAlias = Literal["auto", "embedded", "tfds"]

MAX_STEPS = 10**9
MAX_SEED = 2**32 - 1
VIEWS = 16


@dataclass(frozen=True)
class Plan:
    """What a run was asked to do.

    Attributes:
        demo: The demo's name.
        distribution: Its distribution and version, e.g. ``ecotour-gan 0.1.0``.
        config: The demo's own configuration.
        steps: For every named step, or ``None`` for what the demo says.
        seed: Of the run's key; 0 … 2**32 - 1.
        log_every: Steps between two reports, or ``None`` for a choice that fits the length.
        checkpoint_every: Steps between two snapshots, or ``None`` for one about every 30 s.
        data: Where datasets come from.
        data_dir: Where tensorflow-datasets keeps its copies, or ``None`` for its default.
        stop_on_nonfinite: Whether a metric that is not finite ends the run.
        source_file: The file that the demo was loaded from, where it is not an installed one.
        source_hash: The SHA-256 of the source of the module that has the demo's hook.
        about: What the demo says of itself, in one line.
    """

    demo: str
    distribution: str
    config: Any
    steps: int | None = None
    seed: int = 0
    log_every: int | None = None
    checkpoint_every: int | None = None
    data: DataChoice = "auto"
    data_dir: Path | None = None
    stop_on_nonfinite: bool = False
    source_file: Path | None = None
    source_hash: str = ""
    about: str = ""

    def log_interval(self, total: int) -> int:
        """Steps between two reports: enough for a curve, at most 100, at least 1."""
        return self.log_every or max(1, min(100, total // 250))


def view_points(total: int) -> tuple[int, ...]:
    """After which steps to look at the state: 0, then 16 points that grow like squares.

    Early steps change the picture most, so the points lie closer there. The last is ``total``.
    """
    return tuple(sorted({round(total * (k / VIEWS) ** 2) for k in range(VIEWS + 1)}))
