"""Demos with exactly one fault each: a sound one, and what is replaced in its source.

The names are those of the findings that must catch them, and nothing else.
"""

from __future__ import annotations

SOUND = '''
"""Learns the mean of noisy numbers."""
from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import ecotour
from ecotour import exhibits

#TOP


@dataclasses.dataclass(frozen=True)
class Config:
    rate: float = ecotour.flag(0.5, "of the descent", above=0)
    batch_size: int = ecotour.flag(4, "numbers a step", at_least=1)


def init(key, batch):
    #INIT
    return {"mean": 10.0 + jax.random.normal(key, (), jnp.float32), "count": jnp.int32(0)}


#HELPERS


def build(config):
    #BUILD

    @jax.jit
    def step(state, batch, key):
        noise = 0.01 * jax.random.normal(key, (), jnp.float32)
        gap = jnp.mean(batch["x"]) - state["mean"]
        mean = state["mean"] + jnp.float32(config.rate) * gap + noise
        state = {"mean": mean, "count": state["count"] + 1}
        metrics = {"loss": gap**2}
        #STEP
        return state, metrics

    def view(state, key):
        shown = exhibits.Bars(("mean",), np.asarray(state["mean"])[None], "The mean so far.")
        #VIEW
        return {"mean": shown}

    def judge(outcome):
        check = ecotour.Check.at_most("distance", abs(outcome.states["fit"]["mean"] - 3), 0.2)
        verdict = ecotour.Verdict((check,))
        #JUDGE
        return verdict

    x = np.random.default_rng(0).normal(3, 0.1, 64).astype(np.float32)
    info = ecotour.DataInfo("numbers", "synthetic", "train", 64)
    made = ecotour.Step(init, step, 40, view=view)
    #MADE
    return ecotour.Program(
        {"fit": made}, judge, {"train": ecotour.Dataset(info, {"x": x})}, config.batch_size
    )


@ecotour.hookimpl
def ecotour_demo():
    demo = ecotour.Demo("Learns a mean.", Config, build)
    #HOOK
    return demo
'''

FAULTS: dict[str, dict[str, str]] = {
    "import-fails": {"#TOP": "import there_is_no_such_module"},
    "hook-missing": {"@ecotour.hookimpl\ndef ecotour_demo": "def demo"},
    "hook-unmarked": {"@ecotour.hookimpl\n": ""},
    "hook-misspelt": {"def ecotour_demo": "def ecotour_dmeo"},
    "hook-signature": {"def ecotour_demo()": "def ecotour_demo(config)"},
    "hook-fails": {"#HOOK": "raise RuntimeError('no')"},
    "hook-returns": {"#HOOK": "return None"},
    "config": {"ecotour.flag(0.5,": "ecotour.flag(dataclasses.MISSING,"},
    "flag-help": {'"of the descent"': '""'},
    "config-mutable": {"(frozen=True)": ""},
    "build-fails": {"#BUILD": "1 / 0"},
    "build-returns": {"#BUILD": "return None"},
    "offline": {"#BUILD": "__import__('urllib.request').request.urlopen('http://192.0.2.1/')"},
    "needs": {"#BUILD": "raise __import__('ecotour.errors').errors.DataError('get it')"},
    "settings": {"#TOP": "jax.config.update('jax_default_matmul_precision', 'highest')"},
    "init-fails": {"#INIT": "raise ValueError('no')"},
    "step-fails": {"#STEP": "assert metrics['loss'] > 0"},
    "state-leaf": {'"count": jnp.int32(0)}': '"count": jnp.int32(0), "activation": jnp.tanh}'},
    "state-leaf, after a step": {"#STEP": "state['count'] = jnp.tanh"},
    "metrics": {"#STEP": "metrics = {'loss': batch['x']}"},
    "metrics, no number": {"#STEP": "metrics['word'] = 'loss'"},
    "run-fails": {'{"x": x})}, config.batch_size': '{"x": x})}, 65'},
    "state-structure": {"#STEP": "state = tuple(state.values())"},
    "state-shape": {"#STEP": "state['mean'] = mean[None]"},
    "state-dtype": {"#STEP": "state['mean'] = mean.astype(jnp.bfloat16)"},
    "state-weak-type": {"jnp.int32(0)": "0", 'state["count"] + 1': "jnp.int32(3)"},
    "host-round-trip": {"#STEP": "jax.debug.print('{}', gap)"},
    "key-reuse": {"#STEP": "metrics['more'] = jax.random.uniform(key, (), jnp.float32)"},
    "seed-ignored": {
        "#STEP": "metrics['more'] = jax.random.uniform(jax.random.key(0))",
        "0.01 * jax.random.normal(key, (), jnp.float32)": "jnp.float32(0)",
    },
    "metric-finite": {"#STEP": "metrics['loss'] = jnp.log(0 * gap)"},
    "metric-names": {
        "    @jax.jit\n": "",
        "#STEP": "metrics[f'loss {int(state[\"count\"])}'] = gap",
        "view=view)": "view=view, compiled=False)",
    },
    "jit-disagrees": {
        "#BUILD": "traced = []",
        "#STEP": "traced.append(1); metrics['loss'] += len(traced)",
    },
    "same-bits": {
        "#BUILD": "now = __import__('time').perf_counter()",
        "#STEP": "metrics['now'] = jnp.float32(now)",
    },
    "resume": {
        "#BUILD": "seen = []",
        "#VIEW": "seen.append(float(state['mean'])); shown = "
        "exhibits.Bars(tuple(map(str, range(len(seen)))), seen, 'All means so far.')",
    },
    "donation": {
        '"count": jnp.int32(0)}': '"count": jnp.int32(0), "two": jnp.ones(2)}',
        'state["count"] + 1}': 'state["count"] + 1, "two": state["two"] * 2}',
        "#BUILD": "held = []",
        "#VIEW": "held.append(state['two']); held[0] + 1",
    },
    "donation, in an exhibit": {
        '"count": jnp.int32(0)}': '"count": jnp.int32(0), "two": jnp.ones(2)}',
        'state["count"] + 1}': 'state["count"] + 1, "two": state["two"] * 2}',
        "#VIEW": "shown = exhibits.Bars(('a', 'b'), state['two'], 'Two.')",
    },
    "exhibit": {"#VIEW": "shown = 3"},
    "exhibit, no mapping": {'{"mean": shown}': "[shown]"},
    "exhibit, of the judge": {"#JUDGE": "verdict = ecotour.Verdict((check,), {'mean': 3})"},
    "exhibit, no mapping of the judge": {"#JUDGE": "verdict = ecotour.Verdict((check,), [3])"},
    "view-fails": {"#VIEW": "1 / 0"},
    "view-compiles": {"#VIEW": "jax.jit(lambda x: x * 2)(state['mean'])"},
    "judge-fails": {"#JUDGE": "outcome.history['fit']['loss'].values[30]"},
    "no-checks": {"#JUDGE": "verdict = ecotour.Verdict(())"},
    "no-checks, no verdict": {"#JUDGE": "verdict = None"},
    "no-checks, something else": {"#JUDGE": "verdict = ecotour.Verdict((True,))"},
    "checks-cannot-fail": {" - 3), 0.2)": " - 3), 1e9)"},
    "devices": {"#STEP": "metrics['loss'] *= jax.device_count()"},
    "vmap": {
        "#HELPERS": "@jax.custom_batching.custom_vmap\ndef same(x):\n    return x\n\n\n"
        "@same.def_vmap\ndef _(size, batched, x):\n    return jnp.mean(x) + 0 * x, True",
        "#STEP": "metrics['loss'] = same(gap)",
        "view=view)": "view=view, seeds_in_parallel=True)",
    },
    "x64": {"0.01 * jax.random.normal(key, (), jnp.float32)": "0.01 * jax.random.normal(key, ())"},
    "switches": {
        "#STEP": "x = jnp.ones((2, 3), jnp.float32); metrics['loss'] += 0.0 * (x * x[0]).sum()"
    },
    "switches, as it is imported": {"#TOP": "ONE = jnp.ones(())"},
    "settings-run": {"#JUDGE": "np.random.seed(3)"},
    "prints": {"#BUILD": "print('hello')"},
    "prints, as it is imported": {"#TOP": "print('{}')"},
    "prints, past Python's stream": {"#TOP": "__import__('os').write(1, b'[]')"},
    "prints, through another program": {"#TOP": "__import__('os').system('echo {}')"},
    "prints, through the first stream": {"#TOP": "__import__('sys').__stdout__.write('{}')"},
    "argv": {"#BUILD": "len(__import__('sys').argv[1:])"},
}


def source(fault: str) -> str:
    """The demo with one fault; the sound one for the empty name."""
    text = SOUND
    for old, new in FAULTS.get(fault, {}).items():
        assert old in text, old
        text = text.replace(old, new)
    return text
