"""How a named step is driven: compiled ahead of time, or called as it is.

Both keep the state and the number of the last step done, and offer the same five names: ``state``,
``prepare``, ``advance``, ``fetch`` and ``settle``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import jax
import numpy as np

from ecotour.contract.demo import State, Step
from ecotour.errors import ContractError
from ecotour.running import stages
from ecotour.running.feed import Feed
from ecotour.running.keys import on_device

MAX_RECOMPILES = 3
IN_FLIGHT = 8
"""Steps handed to several devices before they are waited for. With many more under way (36 were
well, 64 were not) a sum over a CPU's devices can wait for ever for a part that was never begun."""


class CompiledDriver:
    """Drives a pure step: one dispatch a step, the step's number carried on the device."""

    def __init__(
        self, name: str, step: Step, feed: Feed | None, key: jax.Array, state: State, done: int
    ) -> None:
        """Stand after step number ``done`` with ``state``."""
        self.name, self.step, self.feed, self.key, self.done = name, step, feed, key, done
        self.carry = (on_device(done + 1), state)
        self.arrays = feed.arrays if feed else {}
        self.order = (
            feed.order(feed.epoch(done + 1)) if feed else jax.device_put(np.zeros(0, np.int32))
        )
        self.metrics: Any = {}
        self.stale: list[str] = []
        self.spread = False

    @property
    def state(self) -> State:
        """After the last step done."""
        return self.carry[1]

    def prepare(self, costs: Mapping[str, Any]) -> dict[str, Any]:
        """Compile for the state as it is, and say what that cost."""
        step, feed = self.step.step, self.feed

        def driven(carry: Any, arrays: Any, order: jax.Array, key: jax.Array) -> Any:
            number, state = carry
            batch = feed.batch(arrays, order, number) if feed else None
            state, metrics = step(state, batch, jax.random.fold_in(key, number))
            stages.check_metrics(metrics, self.name)
            return (number + 1, stages.check_state(state, self.name)), metrics

        self.program, shapes, made = stages.compile_step(
            driven, self.carry, self.arrays, self.order, self.key
        )
        self.spread = stages.count_devices(self.program) > 1
        given = self.carry, self.arrays, self.order, self.key
        self.carry, self.arrays, self.order, self.key = stages.place(self.program, given)
        (_, state_shapes), _ = shapes
        self.stale = stages.differences(self.state, state_shapes)
        made["compiles"] = costs["compiles"] + 1
        for part in ("trace_s", "lower_s", "compile_s"):
            made[part] += costs[part] or 0.0
        if self.stale and made["compiles"] > MAX_RECOMPILES:
            raise ContractError(
                f"the state of step {self.name!r} changes at every step, so that each must be "
                f"compiled anew: {'; '.join(self.stale[:3])}. Keep its structure, shapes and "
                "dtypes the same"
            )
        return made

    def advance(self, goal: int, stop: Callable[[], bool]) -> int:
        """Go on to step number ``goal``, unless asked to stop; return the number reached."""
        if self.stale:
            goal = self.done + 1
        carry, done = self.carry, self.done
        program, arrays, key = self.program, self.arrays, self.key
        while done < goal:
            end = goal
            if self.feed:
                epoch = self.feed.epoch(done + 1)
                end = min(goal, (epoch + 1) * self.feed.steps_per_epoch)
                if done % self.feed.steps_per_epoch == 0:
                    self.order = jax.device_put(self.feed.order(epoch), self.order.sharding)
            order = self.order
            while done < end:
                carry, self.metrics = program(carry, arrays, order, key)
                done += 1
                if self.spread and done % IN_FLIGHT == 0:
                    jax.block_until_ready(carry)
                if stop():
                    goal = end = done
        self.carry, self.done = carry, done
        return done

    def fetch(self) -> dict[str, float]:
        """Wait for the device, and take the metrics of the last step."""
        jax.block_until_ready(self.carry)
        return {name: float(value) for name, value in jax.device_get(self.metrics).items()}

    def settle(self, costs: dict[str, Any]) -> str:
        """Compile again where the state came back different; say why, or nothing."""
        if not self.stale:
            return ""
        reason = "; ".join(self.stale)
        costs |= self.prepare(costs)
        return reason


class EagerDriver:
    """Calls a step as it is, in Python."""

    def __init__(
        self, name: str, step: Step, feed: Feed | None, key: jax.Array, state: State, done: int
    ) -> None:
        """Stand after step number ``done`` with ``state``."""
        self.name, self.step, self.feed, self.key = name, step, feed, key
        self.state, self.done = state, done
        self.metrics: Any = {}

    def prepare(self, costs: Mapping[str, Any]) -> dict[str, Any]:
        """Nothing to compile."""
        return {}

    def advance(self, goal: int, stop: Callable[[], bool]) -> int:
        """Go on to step number ``goal``, unless asked to stop; return the number reached."""
        while self.done < goal:
            number = self.done + 1
            batch = self.feed and self.feed.batch_at(number)
            key = jax.random.fold_in(self.key, on_device(number))
            with jax.transfer_guard("allow"):  # to go to and fro is what such a step does
                self.state, self.metrics = self.step.step(self.state, batch, key)
            self.done += 1
            if self.step.compiled:  # JAX was told to compile nothing; the promise is the same
                stages.check_state(self.state, self.name)
            if stop():
                break
        return self.done

    def fetch(self) -> dict[str, float]:
        """Take the metrics of the last step; in Python they can be of other kinds at each."""
        stages.check_metrics(self.metrics, self.name, self.done)
        return {name: float(value) for name, value in jax.device_get(self.metrics).items()}

    def settle(self, costs: dict[str, Any]) -> str:
        """Nothing to compile again."""
        return ""


Driver: TypeAlias = CompiledDriver | EagerDriver
