"""The guards: every tool is a small change to a training, so each can be tried on each fault.

Static tools look at shapes, types and structure; they run while JAX traces, and cost nothing once
the program is compiled. Value tools need the numbers, and have to wait for them.
"""

# %% What a guard consists of
from __future__ import annotations

import io
import itertools
import unittest
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import chex
import jax
import jax.numpy as jnp
from jax.experimental import checkify

from ecotour_chex.training import Training
from ecotour_chex.visit import Moment, Visit, Watch, on_devices, visit

Step: TypeAlias = Callable[..., Any]
Make: TypeAlias = Callable[[], Training]
"""Makes a training, fresh each time."""


@dataclass(frozen=True)
class Tool:
    """One guard.

    Attributes:
        name: What it is called on the labels.
        guard: From a maker of trainings to the pieces that put the guard in place.
        watch: For a guard that only looks on: what to do between two steps.
        raises: The exceptions that are the tool's own; any other is the fault's.
        apart: Whether it is tried in a process of its own. Once `chex.chexify` has been used, Chex
            prints a warning when the process ends, whether all checks were waited for or not.
        run: How to carry out a guarded visit; the variants need a test case around it.
    """

    name: str
    guard: Callable[[Make], dict[str, Any]] = lambda make: {}
    watch: Watch | None = None
    raises: tuple[type[Exception], ...] = (AssertionError,)
    apart: bool = False
    run: Callable[[Make, Sequence[Any], jax.Array], Visit] | None = None

    def visit(self, make: Make, batches: Sequence[Any], key: jax.Array) -> Visit:
        """Train as ``make`` says, with this guard in place."""
        if self.run is not None:
            return self.run(make, batches, key)
        return visit(replace(make(), **self.guard(make)), batches, key)


# %% Static: shapes, types, structure
def shape_of_predictions(make: Make) -> dict[str, Any]:
    """`chex.assert_shape` where the predictions are made: one for each example."""
    predict = make().predict

    def checked(params: Any, inputs: jax.Array) -> jax.Array:
        predictions = predict(params, inputs)
        chex.assert_shape(predictions, inputs.shape[:1])
        return predictions

    return {"predict": checked}


@chex.dataclass(frozen=True)
class TrainState:
    """The state with its fields spelt out; JAX takes it for a tree, Python knows the names.

    Frozen, because on an unfrozen one ``state.velocty = …`` would quietly add a leaf.
    """

    params: Any
    velocity: Any
    rate: jax.Array
    number: jax.Array


# %% Traces
_fresh = itertools.count()


def one_trace(make: Make) -> dict[str, Any]:
    """`chex.assert_max_traces` around the step, inside of jit."""
    compiled = make().compile

    def compile_counted(step: Step) -> Step:
        # Chex counts by name and source for as long as the process lives; a fresh name starts at 0
        # without clearing the counts of anybody else (`chex.clear_trace_counter`).
        step.__name__ = f"{step.__name__}_{next(_fresh)}"
        return compiled(chex.assert_max_traces(step, n=1))

    return {"compile": compile_counted}


# %% Values
def finite_inside(make: Make, wait: bool = True) -> dict[str, Any]:
    """`chex.assert_tree_all_finite` in the compiled step, carried out by `chex.chexify`."""
    compiled = make().compile

    def compile_chexified(step: Step) -> Step:
        def checked(*arguments: Any) -> Any:
            state, loss = step(*arguments)
            chex.assert_tree_all_finite(state["params"])
            return state, loss

        return chex.chexify(compiled(checked), async_check=not wait)

    return {"compile": compile_chexified, "farewell": lambda call: call.wait_checks()}


def checkify_inside_jit(make: Make) -> dict[str, Any]:
    """`jax.jit` of `checkify.checkify`, and not the other way round."""

    def compile_checked(step: Any) -> Any:
        def checked(*arguments: Any) -> Any:
            state, loss = step(*arguments)
            finite = jnp.isfinite(state["params"]["weights"]).all()
            checkify.check(finite, "the parameters are not finite")
            return state, loss

        program = jax.jit(checkify.checkify(checked))

        def call(*arguments: Any) -> Any:
            error, result = program(*arguments)
            error.throw()
            return result

        return call

    return {"compile": compile_checked}


# %% Rules of one's own
def key_is_new(old: Moment, new: Moment) -> None:
    """`chex.assert_trees_all_equal_comparator` with the rule that two steps share no key."""
    if old.key is not None:
        chex.assert_trees_all_equal_comparator(
            lambda a, b: bool(jnp.any(jax.random.key_data(a) != jax.random.key_data(b))),
            lambda a, b: "two steps in a row were given the same key",
            old.key,
            new.key,
        )


def buffer_is_alive(old: Moment, new: Moment) -> None:
    """`chex.assert_trees_all_equal_comparator` with the rule that no array was given away."""
    chex.assert_trees_all_equal_comparator(
        lambda a, b: not a.is_deleted() and not b.is_deleted(),
        lambda a, b: "this buffer was donated, and the loop still holds it",
        old.state["params"],
        new.state["params"],
    )


# %% Two ways to run, one result
def compared_with(other: Step, compiled: Callable[[Step], Step]) -> Callable[[Step], Step]:
    """Compile with ``compiled``, and compare the state after each step with the ``other`` way's."""

    def compile_compared(step: Step) -> Step:
        call = compiled(step)

        def both(state: Any, batch: Any, noise: jax.Array) -> Any:
            theirs = other(state, batch, noise)
            ours, loss = call(state, batch, noise)
            chex.assert_trees_all_close(ours, theirs, rtol=1e-4, atol=1e-5)
            return ours, loss

        return both

    return compile_compared


def with_plain(make: Make, compiled: Callable[[Step], Step]) -> dict[str, Any]:
    """Each compiled step beside the same step as plain Python."""
    step = make().step()
    return {"compile": compared_with(lambda *arguments: step(*arguments)[0], compiled)}


def visits_by_variant(
    make: Make, batches: Sequence[Any], key: jax.Array, **which: bool
) -> dict[str, Visit]:
    """`chex.variants`: one test, run once for each variant; the plain function is the measure."""
    visits: dict[str, Visit] = {}

    class SameResult(chex.TestCase):
        @chex.variants(**which)  # type: ignore[untyped-decorator]
        def test_steps(self) -> None:
            training = replace(make(), **with_plain(make, self.variant))
            visits[self.variant.type.name.lower()] = visit(training, batches, key)

    tests = unittest.defaultTestLoader.loadTestsFromTestCase(SameResult)
    result = unittest.TextTestRunner(stream=io.StringIO()).run(tests)
    assert result.testsRun == len(visits), result  # none was skipped, none broke outside a visit
    return visits


def under_variants(make: Make, batches: Sequence[Any], key: jax.Array) -> Visit:
    """The variants that need no devices, and what the first to object said."""
    seen = visits_by_variant(make, batches, key, with_jit=True, without_jit=True)
    return max(seen.values(), key=lambda one: one.raised_at)


def as_on_devices(make: Make) -> dict[str, Any]:
    """`chex.fake_pmap_and_jit`: the step on four devices that are not there, against one."""
    parallel = make()

    def other(state: Any, batch: Any, noise: jax.Array) -> Any:
        with chex.fake_pmap_and_jit():
            return jax.tree.map(lambda x: x[0], on_devices(parallel)(state, batch, noise))

    return {"compile": compared_with(other, make().compile)}


def keys_used_once(make: Make) -> dict[str, Any]:
    """JAX's own check of keys: Chex has none."""
    context = make().context

    @contextmanager
    def both() -> Iterator[None]:
        with context(), jax.debug_key_reuse(True):
            yield

    return {"context": both}


# %% In the order of the tour
# What only looks on compares the state before a step with the state after it.
TOOLS: tuple[Tool, ...] = (
    Tool("no tool", watch=lambda old, new: None),
    Tool("assert_shape", shape_of_predictions),
    Tool(
        "assert_trees_all_equal_dtypes",
        watch=lambda old, new: chex.assert_trees_all_equal_dtypes(old.state, new.state),
    ),
    Tool(
        "assert_trees_all_equal_structs",
        watch=lambda old, new: chex.assert_trees_all_equal_structs(old.state, new.state),
    ),
    Tool("dataclass", lambda make: {"record": TrainState}, raises=(TypeError, ValueError)),
    Tool("assert_max_traces", one_trace),
    Tool(
        "assert_tree_all_finite",
        watch=lambda old, new: chex.assert_tree_all_finite(new.state),
    ),
    Tool("chexify", finite_inside, apart=True),
    Tool("chexify, not waiting", partial(finite_inside, wait=False), apart=True),
    Tool("comparator: key is new", watch=key_is_new),
    Tool("comparator: buffer alive", watch=buffer_is_alive),
    Tool("variants", lambda make: with_plain(make, make().compile), run=under_variants),
    Tool("fake_pmap_and_jit", as_on_devices),
    Tool("jax.debug_key_reuse", keys_used_once, raises=(jax.errors.KeyReuseError,)),
)
APART: tuple[Tool, ...] = tuple(tool for tool in TOOLS if tool.apart)
HERE: tuple[Tool, ...] = tuple(tool for tool in TOOLS if not tool.apart)
BY_HAND = Tool("checkify inside jit, by hand", checkify_inside_jit)
"""The same check as chexify's, as JAX's own documentation does it: jit on the outside."""
