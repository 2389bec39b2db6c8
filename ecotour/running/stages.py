"""From a Python function to a running program, each stage timed: the cost ledger of a step.

The stages are JAX's own (`jax.stages`): trace to a jaxpr, lower to StableHLO, compile with XLA.
What XLA says of the result is kept as XLA's count: it may miss what happens inside custom calls,
and some backends do not answer, which is `None` here.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from ecotour.contract.events import NOT_METRICS
from ecotour.errors import ContractError

_NOT_LOWERED = {"float6_e2m3fn", "float6_e3m2fn", "uint1"}
"""Dtypes that `jax.numpy` has and XLA does not take (jax 0.10.2)."""

_cache_hits = 0
_listening = False


def use_compilation_cache(directory: Path) -> None:
    """Keep compiled programs in ``directory`` and find them there again, however small.

    This is a setting of the whole process, so only the command line makes it.
    """
    jax.config.update("jax_compilation_cache_dir", str(directory))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    # XLA's own side caches write absolute paths of this directory into the cache key
    jax.config.update("jax_persistent_cache_enable_xla_caches", "none")


def run_once(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call ``function`` as one program, compiled in a hurry.

    For what runs a single time, such as the making of parameters: XLA's full optimisation of that
    takes several times longer than it could ever save (10 s instead of 2.4 s for the GAN's).
    """
    hurry = {"xla_backend_optimization_level": 1}
    return jax.jit(function, compiler_options=hurry)(*arguments)


def compile_step(
    function: Callable[..., Any], *arguments: Any
) -> tuple[jax.stages.Compiled, Any, dict[str, Any]]:
    """Trace, lower and compile ``function``, whose first argument is donated.

    Returns:
        The program, what it returns (a tree with shapes and dtypes), and the costs: ``trace_s``,
        ``lower_s``, ``compile_s`` in seconds, ``cache_hit``, ``flops`` and ``peak_bytes``.
    """
    _listen()
    hits = _cache_hits
    began = time.perf_counter()
    traced = jax.jit(function, donate_argnums=0).trace(*arguments)
    traced_at = time.perf_counter()
    with warnings.catch_warnings():
        # a state that changes is reported as such, leaf by leaf, by whoever called
        warnings.filterwarnings("ignore", message="Some donated buffers were not usable")
        lowered = traced.lower()
    lowered_at = time.perf_counter()
    program = lowered.compile()
    costs = {
        "trace_s": traced_at - began,
        "lower_s": lowered_at - traced_at,
        "compile_s": time.perf_counter() - lowered_at,
        "cache_hit": _cache_hits > hits,
        "flops": _flops(program),
        "peak_bytes": _peak_bytes(program),
    }
    return program, traced.out_info, costs


def place(program: jax.stages.Compiled, arguments: Any) -> Any:
    """Put arguments where a program for several devices wants them; they would move at each call.

    Those of a program for one device, and those that it does not use, stay where they are.
    """
    if count_devices(program) == 1:
        return arguments
    places, _ = program.input_shardings

    def put(place: Any, argument: Any) -> Any:
        return argument if place is None else jax.device_put(argument, place)

    return jax.tree.map(put, places, arguments, is_leaf=lambda one: one is None)


def count_devices(program: jax.stages.Compiled) -> int:
    """On how many devices a program runs."""
    places, _ = program.input_shardings
    return max((len(one.device_set) for one in jax.tree.leaves(places)), default=1)


def differences(before: Any, after: Any, what: str = "state") -> list[str]:
    """Name each leaf that is not the same in two trees of shapes, from what to what."""
    old_structure: Any
    new_structure: Any
    old, old_structure = jax.tree_util.tree_flatten_with_path(before)
    new, new_structure = jax.tree_util.tree_flatten_with_path(after)
    old_leaves = {_path(what, path): _describe(leaf) for path, leaf in old}
    new_leaves = {_path(what, path): _describe(leaf) for path, leaf in new}
    found = [
        f"{path}: {old_leaves.get(path, 'absent')} -> {new_leaves.get(path, 'absent')}"
        for path in dict.fromkeys([*old_leaves, *new_leaves])
        if old_leaves.get(path) != new_leaves.get(path)
    ]
    if not found and old_structure != new_structure:
        found.append(f"{what}: {old_structure} -> {new_structure}")
    return found


def check_state(state: Any, of: str) -> Any:
    """Return the state of a compiled step; refuse one that holds anything but arrays.

    Raises:
        ContractError: Naming the leaf and what it is.
    """
    for path, leaf in jax.tree_util.tree_flatten_with_path(state)[0]:
        try:
            jax.typeof(leaf)
        except TypeError:
            found = "function" if callable(leaf) else f"value of type {type(leaf).__name__}"
            raise ContractError(
                f"the state of step {of!r} holds a {found} at {_path('state', path)}: keep what is "
                "no array out of it, in build"
            ) from None
    return state


def check_metrics(metrics: Any, of: str, number: int = 1) -> None:
    """Refuse whatever is not a mapping of names to scalars that are numbers.

    Args:
        metrics: What step number ``number`` of the named step ``of`` returned; tracers will do.
        of: The named step's.
        number: From 1.

    Raises:
        ContractError: Naming the metric and what it is.
    """
    if not isinstance(metrics, dict):
        raise ContractError(
            f"step {of!r} returned {type(metrics).__name__} as metrics at step {number}: "
            "return a dict of scalars by name"
        )
    for name, value in metrics.items():
        if not isinstance(name, str):
            raise ContractError(f"step {of!r}: the metric name {name!r} is not a string")
        if name in NOT_METRICS:
            raise ContractError(
                f"step {of!r}: the metric name {name!r} is taken by the record: choose another"
            )
        shape = getattr(value, "shape", ())
        if shape != ():
            raise ContractError(
                f"metric {name!r} of step {of!r} has shape {tuple(shape)} at step {number}: "
                "metrics are scalars; reduce it, for instance with jnp.mean"
            )
        if not hasattr(value, "shape") and not isinstance(value, int | float):
            raise ContractError(
                f"metric {name!r} of step {of!r} is a {type(value).__name__} at step {number}: "
                "metrics are real numbers"
            )
        if hasattr(value, "dtype") and (mend := _no_number(value.dtype)):
            raise ContractError(
                f"metric {name!r} of step {of!r} has dtype {value.dtype} at step {number}: "
                f"metrics are real numbers; {mend}"
            )


def _no_number(dtype: Any) -> str:
    """How to mend a metric of a dtype that is no real number; empty for one that is."""
    if jnp.issubdtype(dtype, jnp.complexfloating):
        return "report jnp.abs of it, or jnp.real and jnp.imag under two names"
    if jnp.issubdtype(dtype, jax.dtypes.prng_key):
        return "leave the key out"
    if str(dtype) in _NOT_LOWERED:
        return "XLA has no programs with these; convert it with .astype(jnp.float32)"
    number = jnp.issubdtype(dtype, jnp.number) or jnp.issubdtype(dtype, jnp.bool_)
    # NumPy counts spans of time among the integers
    return "" if number and dtype.kind != "m" else "leave it out, or make a number of it"


def _flops(program: jax.stages.Compiled) -> float | None:
    analysis = program.cost_analysis()
    flops = analysis.get("flops", -1.0) if isinstance(analysis, dict) else -1.0
    return float(flops) if flops >= 0 else None


def _peak_bytes(program: jax.stages.Compiled) -> int | None:
    memory = program.memory_analysis()
    if memory is None:
        return None
    total = (
        memory.argument_size_in_bytes
        + memory.output_size_in_bytes
        - memory.alias_size_in_bytes
        + memory.temp_size_in_bytes
    )
    return int(total) if total >= 0 else None


def _path(what: str, path: Any) -> str:
    return what + jax.tree_util.keystr(path)


def _describe(leaf: Any) -> str:
    aval = leaf if isinstance(leaf, jax.ShapeDtypeStruct) else jax.typeof(leaf)
    weak = " (weak)" if getattr(aval, "weak_type", False) else ""
    return f"{aval.dtype}[{','.join(map(str, aval.shape))}]{weak}"


def _listen() -> None:
    global _listening
    if not _listening:
        jax.monitoring.register_event_listener(_on_event)
        _listening = True


def _on_event(event: str, **_: Any) -> None:
    global _cache_hits
    if event == "/jax/compilation_cache/cache_hits":
        _cache_hits += 1
