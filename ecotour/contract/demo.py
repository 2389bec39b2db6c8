"""The contract between a demo and the runner.

A demo is a summary, a frozen dataclass of flags, and ``build(config) -> Program``. A program has
named steps and a judge. The runner owns everything else: the loop, the keys, the batches, the
compilation, the clock, the checkpoints, the pictures and the report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ecotour.contract.exhibits import Exhibit

if TYPE_CHECKING:
    import jax
    import numpy as np

State: TypeAlias = Any
"""A pytree of arrays. Structure, shapes and dtypes are the same after a step as before it."""

Batch: TypeAlias = Any
"""A pytree of arrays with the batch as leading axis, or ``None`` for a step without data."""

Metrics: TypeAlias = "Mapping[str, jax.Array]"
"""Scalars by name; the same names at every step."""


class Init(Protocol):
    """``init(key, batch) -> state``: the state before step 1.

    ``batch`` has the shapes and dtypes of a real batch; no step counts it.
    """

    def __call__(self, key: jax.Array, batch: Batch, /) -> State: ...  # noqa: D102


class Update(Protocol):
    """``step(state, batch, key) -> (state, metrics)``: pure; metrics are scalars by name.

    The runner compiles it, whether or not the demo has put `jax.jit` around it. ``key`` is the
    run's key with the step's number folded in, so no two steps share one. The state that went in
    is *donated*: its memory is used for the new one, and it is gone afterwards.
    """

    def __call__(  # noqa: D102
        self, state: State, batch: Batch, key: jax.Array, /
    ) -> tuple[State, Metrics]: ...


class View(Protocol):
    """``view(state, key) -> {name: exhibit}``: what to look at while the run is going on.

    ``key`` is the same at every call of a run, so fixed latents are simply drawn from it. Called
    between two steps; its time is booked apart from theirs.
    """

    def __call__(self, state: State, key: jax.Array, /) -> Mapping[str, Exhibit]: ...  # noqa: D102


@dataclass(frozen=True)
class Step:
    """One named thing that a program does again and again.

    Attributes:
        init: Makes the state before step 1.
        step: Advances it.
        steps: How often, unless the user says ``--steps``.
        view: What to look at meanwhile, or nothing.
        guides: For a metric's name, ``(height, legend)`` of a reference line in its curve, such
            as the loss at equilibrium.
        lower_is_better: For a metric's name, whether its best value is the lowest (the default
            is that there is no best). The record and the report name the best one that is finite.
        compiled: ``True`` for a pure step, which the runner compiles ahead of time. ``False`` for
            one that measures or breaks something in plain Python: it is called as it is, once a
            step, its state may be anything, and it may take its time.
        seeds_in_parallel: Whether ``jax.vmap`` over seeds (of ``init`` and ``step``, one batch)
            gives the numbers of separate runs; ``ecotour check`` proves it where it is said.
    """

    init: Init
    step: Update
    steps: int
    view: View | None = None
    guides: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    lower_is_better: Mapping[str, bool] = field(default_factory=dict)
    compiled: bool = True
    seeds_in_parallel: bool = False


@dataclass(frozen=True)
class DataInfo:
    """Which data a result stands on; shown wherever the result is.

    Attributes:
        name: The dataset, e.g. ``mnist``.
        source: ``embedded`` (the subset in the package), ``tfds`` (all of it), ``synthetic``
            (made by the demo), ``published`` (a small table in the demo's source).
        split: ``train``, ``test``, or what the dataset calls it.
        examples: Their number.
        full_examples: The number of examples of the whole split, where that is known and larger.
    """

    name: str
    source: str
    split: str
    examples: int
    full_examples: int | None = None

    def __str__(self) -> str:
        """One phrase, e.g. ``mnist train, embedded subset (10,000 of 60,000 examples)``."""
        count = f"{self.examples:,}"
        if self.full_examples and self.full_examples != self.examples:
            count += f" of {self.full_examples:,}"
        kind = {"embedded": "embedded subset", "tfds": "full set"}.get(self.source, self.source)
        return f"{self.name} {self.split}, {kind} ({count} examples)"


@dataclass(frozen=True)
class Dataset:
    """Examples in memory: ``arrays`` by name, each with the ``info.examples`` as leading axis."""

    info: DataInfo
    arrays: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Digits:
    """A request for MNIST: ``image`` ``uint8 [N, 28, 28, 1]`` and ``label`` ``uint8 [N]``.

    The runner answers it with the source that the user chose (``--data auto|embedded|tfds``).
    """

    split: str = "train"


Source: TypeAlias = Digits | Dataset


@dataclass(frozen=True)
class Series:
    """What was reported of one metric: ``steps`` ``int64 [R]``, ``values`` ``float64 [R]``."""

    steps: np.ndarray
    values: np.ndarray

    @property
    def last(self) -> float:
        """The value at the last reported step."""
        return float(self.values[-1])


@dataclass(frozen=True)
class Outcome:
    """All that a run leaves behind, for the judge.

    Attributes:
        states: The last state of each step, by the step's name.
        history: The reported metrics, by the step's name and the metric's.
        data: The datasets that the program asked for, by their names there.
        key: A key of the run that no step has seen.
        ledger: For each step's name, what ``run.json`` holds under ``ledger.steps`` (seconds and
            milliseconds as the clock gave them: the one thing here that is not reproducible).
    """

    states: Mapping[str, State]
    history: Mapping[str, Mapping[str, Series]]
    data: Mapping[str, Dataset]
    key: jax.Array
    ledger: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Check:
    """One sentence of the verdict: a measured value and what was wanted.

    Make one with `at_least`, `at_most`, `equals` or `between`, so that ``passed`` follows from the
    value. A value that is not a number passes nothing.

    Attributes:
        name: What was measured.
        value: What came of it.
        want: What was wanted, in words.
        passed: Whether it is so. The runner puts ``None`` where a run was shorter than ``horizon``:
            it is too early to judge.
        horizon: Steps after which the check can be judged; by default as many as the program's
            named steps have without ``--steps``. 1 is for what is true after any number of steps.
            More than the program's own number count as that number.
    """

    name: str
    value: float
    want: str
    passed: bool | None
    horizon: int | None = None

    @classmethod
    def at_least(
        cls, name: str, value: float, bound: float, *, horizon: int | None = None
    ) -> Check:
        """``value >= bound``."""
        value = _number(value)
        return cls(name, value, f">= {bound:g}", value >= bound, horizon)

    @classmethod
    def at_most(cls, name: str, value: float, bound: float, *, horizon: int | None = None) -> Check:
        """``value <= bound``."""
        value = _number(value)
        return cls(name, value, f"<= {bound:g}", value <= bound, horizon)

    @classmethod
    def equals(cls, name: str, value: float, wanted: float, *, horizon: int | None = None) -> Check:
        """``value == wanted``, exactly: for counts and for truth values."""
        value = _number(value)
        return cls(name, value, f"== {wanted:g}", value == wanted, horizon)

    @classmethod
    def between(
        cls, name: str, value: float, low: float, high: float, *, horizon: int | None = None
    ) -> Check:
        """``low <= value <= high``."""
        value = _number(value)
        return cls(name, value, f"{low:g} to {high:g}", low <= value <= high, horizon)


@dataclass(frozen=True)
class Verdict:
    """What the judge says: the checks, what to show beside them, and a word for the reader.

    Attributes:
        checks: What this demo must reach to be called a success.
        exhibits: Pictures and tables of the result, by name.
        summary: One or two sentences on the result, in words; may be empty.
    """

    checks: Sequence[Check]
    exhibits: Mapping[str, Exhibit] = field(default_factory=dict)
    summary: str = ""


@dataclass(frozen=True)
class Program:
    """What a demo does with one configuration.

    Attributes:
        steps: The named steps, carried out one after the other in this order.
        judge: The verdict over the whole run.
        data: Datasets by name. The one called ``train`` feeds the steps: the batch of step i is
            its i-th slice of ``batch_size`` examples, in a fresh permutation for each epoch.
        batch_size: Examples in a batch; needed where there is a ``train``.
        notes: What the report should say of this configuration that a reader could not guess
            (which lowering of the convolutions ran, for instance), by name.
    """

    steps: Mapping[str, Step]
    judge: Callable[[Outcome], Verdict]
    data: Mapping[str, Source] = field(default_factory=dict)
    batch_size: int | None = None
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Demo:
    """What a plugin's hook returns.

    Attributes:
        summary: One line, for ``ecotour show`` and the report.
        config: A frozen dataclass; each field, made with `flag`, is a command-line flag.
        build: From a configuration to the program. Quick: no training, no device.
        teaches: A paragraph on what a reader will have learned.
        cpu_devices: Into how many devices `ecotour run` lets JAX split a CPU for it, where there
            are as many cores. The program must do with any number, and spread its work itself.
    """

    summary: str
    config: type
    build: Callable[[Any], Program]
    teaches: str = ""
    cpu_devices: int = 1


def flag(
    default: Any,
    help: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> Any:
    """Return a dataclass field that becomes a typed command-line flag.

    ``batch_size: int = flag(64, "images a step", at_least=1)`` is ``--batch-size N``. The type is
    the annotation: int, float, bool, str, ``Path``, ``Literal``, ``Enum`` (typed by the members'
    names), a fixed or open ``tuple`` of these (``--channels 8 16``), or any of them ``| None``
    with the default ``None``. Another type is refused as the demo's flags are read.
    The bounds (inclusive, and exclusive: ``above``, ``below``) hold for each number of a tuple.
    """
    bounds = {"at_least": at_least, "at_most": at_most, "above": above, "below": below}
    metadata = {"help": help, "bounds": {k: v for k, v in bounds.items() if v is not None}}
    if default is MISSING:
        return field(metadata=metadata)
    return field(default=default, metadata=metadata)


def _number(value: Any) -> float:
    # bool and int stay what they are, so that a count is shown as one
    return value if isinstance(value, int) else float(value)
