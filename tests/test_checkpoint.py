"""Checkpoints: any state comes back as it was, whatever is damaged is seen, old ones go last."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import runs

from ecotour import events
from ecotour.errors import CheckpointError
from ecotour.rundir.checkpoint import Store
from ecotour.rundir.frozen import freeze, thaw
from ecotour.sinks.checkpoints import Checkpoints


class Pair(NamedTuple):
    left: Any
    right: Any


PARAMS = {"generator/~/linear": {"w": jnp.arange(6.0).reshape(2, 3), "b.c[0]": jnp.ones(3)}}
STATES: dict[str, Any] = {
    "a bare array": jnp.arange(3),
    "no array at all": {"nothing": None, "empty": ()},
    "nested and named": Pair([jnp.ones(2), {"x": (None, jnp.zeros((), jnp.int32))}], {}),
    "an optimizer": Pair(PARAMS, optax.chain(optax.clip(1.0), optax.adam(1e-3)).init(PARAMS)),
    "keys of both kinds": [jax.random.key(3), jax.random.split(jax.random.key(4, impl="rbg"), 5)],
    "an old key": jax.random.PRNGKey(7),
    "narrow numbers": [
        jnp.full((3,), 1.1, dtype)
        for dtype in (jnp.bfloat16, jnp.float16, jnp.float8_e4m3fn, jnp.float8_e5m2)
    ],
    "four bits": jnp.arange(-3, 3).astype(jnp.int4),
    "numbers that are none": jnp.array([jnp.nan, jnp.inf, -jnp.inf, -0.0, 1e-45]),
    "complex and true": [jnp.array([1 + 2j]), jnp.array([True, False])],
    "no elements": {"z": jnp.zeros((0, 4)), "k": jax.random.split(jax.random.key(0), 0)},
    "weak": jnp.asarray(2.5),
    "NumPy's": {"a": np.arange(4, dtype=np.float64), "b": np.int8(3), "c": np.float32(0.1)},
    "Python's": [True, 3, 2**80, -0.0, math.inf, 0.1, "word"],
    "the same name twice": {"a": [jnp.ones(1)], "a/0": jnp.zeros(1)},
}


def same(one: Any, other: Any) -> None:
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        if isinstance(a, float):
            assert (type(b), a.hex()) == (float, b.hex())
        elif not hasattr(a, "dtype"):
            assert (type(a), a) == (type(b), b)
        else:
            assert isinstance(a, jax.Array) == isinstance(b, jax.Array)
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
                assert jax.random.key_impl(a) == jax.random.key_impl(b)
                a, b = jax.random.key_data(a), jax.random.key_data(b)
            elif isinstance(a, jax.Array):
                assert a.weak_type == b.weak_type
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.parametrize("name", STATES)
def test_a_state_comes_back_bit_for_bit(name: str, tmp_path: Path) -> None:
    state = STATES[name]
    frozen = freeze(state)
    assert not frozen.obstacle
    Store(tmp_path).save("up.date/it", 12, frozen, {"finite": True, "mine": 1})
    store = Store(tmp_path)
    assert store.names() == ["up.date/it"]
    assert store.steps("up.date/it") == [12]
    saved = store.load("up.date/it", 12)
    assert (saved.about["mine"], saved.about["step"]) == (1, 12)
    same(thaw(saved, state), state)


def test_a_tree_of_shapes_is_template_enough(tmp_path: Path) -> None:
    state = STATES["an optimizer"]
    Store(tmp_path).save("s", 1, freeze(state), {"finite": True})
    shapes = jax.eval_shape(lambda: state)
    same(thaw(Store(tmp_path).load("s", 1), shapes), state)


def test_a_restored_state_can_be_donated_and_the_checkpoint_stays(tmp_path: Path) -> None:
    Store(tmp_path).save("s", 1, freeze(jnp.arange(1000.0)), {"finite": True})
    saved = Store(tmp_path).load("s", 1)
    state = thaw(saved, jnp.zeros(1000))
    add = jax.jit(lambda x: x + 1, donate_argnums=0)
    for _ in range(3):
        state = add(state)
    assert saved.arrays["state"][-1] == 999
    assert float(state[-1]) == 1002


def test_what_is_frozen_does_not_follow_the_state() -> None:
    owned = np.ones(3)
    donated = jnp.ones(3)
    frozen = freeze({"owned": owned, "donated": donated})
    owned[:] = 2
    jax.block_until_ready(jax.jit(lambda x: x * 5, donate_argnums=0)(donated))
    assert all((array == 1).all() for array in frozen.arrays.values())


@pytest.mark.parametrize(
    ("leaf", "said"),
    [
        (object(), r"\['x'\] is a object"),
        (np.array(["a"]), "array of <U1"),
        (np.array([None]), "array of object"),
        (np.zeros(2, [("a", "f4")]), "array of"),
        (lambda: 1, "is a function"),
    ],
)
def test_what_cannot_be_saved_is_named(leaf: Any, said: str) -> None:
    import re

    assert re.search(said, freeze({"x": leaf}).obstacle)


@pytest.mark.parametrize(
    ("saved", "template", "said"),
    [
        ({"a": jnp.ones(2)}, {"b": jnp.ones(2)}, r"leaf \['a'\] where \['b'\] belongs"),
        ({"a": jnp.ones(2)}, {"a": jnp.ones(3)}, r"float32\[2\] and is float32\[3\]"),
        ({"a": jnp.ones(2)}, {"a": jnp.ones(2, jnp.int32)}, r"is int32\[2\] now"),
        ({"a": jnp.ones(2)}, {"a": jnp.ones(2), "b": jnp.ones(1)}, "1 leaves .* has 2"),
        ({"a": jax.random.key(0)}, {"a": jax.random.key(0, impl="rbg")}, "key<fry>.*key<rbg>"),
        ({"a": jax.random.key(0)}, {"a": jax.random.PRNGKey(0)}, "key<fry>.*uint32"),
    ],
)
def test_another_state_is_refused_and_the_leaf_named(
    saved: Any, template: Any, said: str, tmp_path: Path
) -> None:
    Store(tmp_path).save("s", 1, freeze(saved), {"finite": True})
    with pytest.raises(CheckpointError, match=said):
        thaw(Store(tmp_path).load("s", 1), template)


def test_every_kind_of_damage_is_seen(tmp_path: Path) -> None:
    store = Store(tmp_path)
    state = jnp.asarray(np.random.default_rng(0).normal(size=2000), jnp.float32)
    path = store.save("s", 1, freeze(state), {"finite": True})
    files = [f for f in sorted(path.rglob("*")) if f.is_file() and f.name != "commit_success.txt"]
    seen = 0
    for file in files:
        content = file.read_bytes()
        middle = len(content) // 2
        for damaged in (
            content[:middle],
            b"",
            content[:middle] + bytes([content[middle] ^ 16]) + content[middle + 1 :],
        ):
            file.write_bytes(damaged)
            try:
                restored = thaw(store.load("s", 1), state)
            except CheckpointError as error:
                seen += "\n" not in str(error)
            else:  # a file of Orbax's that does not matter, or a bit that says nothing
                assert (restored == state).all()
        file.write_bytes(content)
    assert seen >= 6
    same(thaw(store.load("s", 1), state), state)


def test_old_checkpoints_go_and_the_last_finite_one_stays(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for step, finite in enumerate((True, True, False, False, False, False), start=1):
        store.save("s", step, freeze(jnp.ones(2)), {"finite": finite})
    assert store.steps("s") == [2, 5, 6]
    for step in (7, 8):
        store.save("s", step, freeze(jnp.ones(2)), {"finite": True})
    assert store.steps("s") == [7, 8]


def test_a_write_that_fails_leaves_the_older_ones_and_says_how_big_it_was(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save("s", 1, freeze(jnp.ones(2)), {"finite": True})
    noise = jnp.asarray(np.random.default_rng(0).normal(size=100_000), jnp.float32)
    with (
        runs.no_file_above(50_000),
        pytest.raises(CheckpointError, match=r"400\.0 kB.*File too large") as caught,
    ):
        store.save("s", 2, freeze(noise), {"finite": True})
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert store.steps("s") == [1]
    same(thaw(store.load("s", 1), jnp.ones(2)), jnp.ones(2))
    assert not list(tmp_path.rglob("*tmp*"))
    store.save("s", 2, freeze(noise), {"finite": True})
    assert store.steps("s") == [1, 2]


def test_a_checkpoint_of_four_devices_is_one_of_one_device_and_the_reverse(tmp_path: Path) -> None:
    Store(tmp_path).save("one", 1, freeze({"w": jnp.arange(8.0)}), {"finite": True})
    script = f"""
import jax, jax.numpy as jnp, pathlib
from jax.sharding import NamedSharding, PartitionSpec
from ecotour.rundir.checkpoint import Store
from ecotour.rundir.frozen import freeze, thaw
assert len(jax.devices()) == 4
mesh = jax.make_mesh((4,), ("d",))
split = NamedSharding(mesh, PartitionSpec("d"))
store = Store(pathlib.Path({str(tmp_path)!r}))
w = thaw(store.load("one", 1), {{"w": jnp.zeros(8)}})["w"]
w = jax.device_put(w, split) + 1
assert len(w.sharding.device_set) == 4
store.save("four", 1, freeze({{"w": w}}), {{"finite": True}})
"""
    flags = runs.environment(XLA_FLAGS="--xla_force_host_platform_device_count=4")
    subprocess.run([sys.executable, "-c", script], env=flags, check=True)
    found = thaw(Store(tmp_path).load("four", 1), {"w": jnp.zeros(8)})
    same(found, {"w": jnp.arange(8.0) + 1})


def snapshot(step: int, value: float = 1.0, of: str = "s") -> events.Snapshot:
    return events.Snapshot(of, step, {"w": jnp.full((3,), value, jnp.float32)}, {"loss": value})


def test_the_sink_saves_while_the_run_goes_on_and_the_newest_snapshot_wins(tmp_path: Path) -> None:
    said: list[str] = []
    sink = Checkpoints(tmp_path, {"demo": "d"}, said.append)
    for step in range(1, 41):
        sink(snapshot(step))
    sink.close()
    store = Store(tmp_path)
    assert store.steps("s")[-1] == 40
    assert store.about("s", 40)["demo"] == "d"
    assert said == []


def test_a_state_with_a_nan_is_saved_and_is_not_the_last_finite_one(tmp_path: Path) -> None:
    sink = Checkpoints(tmp_path, {}, pytest.fail)
    for step, value in ((1, 1.0), (2, math.nan), (3, math.nan), (4, math.nan)):
        sink(snapshot(step, value))
        sink.wait()
    sink.close()
    assert Store(tmp_path).steps("s") == [1, 3, 4]


def test_the_sink_says_what_it_cannot_save_once_and_never_raises(tmp_path: Path) -> None:
    said: list[str] = []
    sink = Checkpoints(tmp_path, {}, said.append)
    for step in (1, 2):
        sink(events.Snapshot("odd", step, {"x": object()}))
    (tmp_path / "checkpoints").write_text("in the way")
    sink(snapshot(3))
    sink.close()
    assert len(said) == 2
    assert "odd" in said[0]
    assert "anew" in said[0]
    assert "checkpoint of s at step 3" in said[1]


def test_a_disk_without_room_is_seen_before_the_first_checkpoint(tmp_path: Path) -> None:
    said: list[str] = []
    sink = Checkpoints(tmp_path, {}, said.append)
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    sink(events.StepBegun("s", 0, 9, 0.1, free, True))
    sink.close()
    assert len(said) == 1
    assert str(tmp_path) in said[0]
