"""The keys of a run, and the step's number, as they come to the device.

Whoever sets ``JAX_TRANSFER_GUARD=disallow`` wants to hear of transfers that nobody meant. Those of
the runner are meant, and say so; and with ``JAX_DEBUG_KEY_REUSE=1`` each key is used up once.
"""

from __future__ import annotations

from collections.abc import Mapping

import jax
import numpy as np

NAMES = ("init", "step", "feed", "view", "judge")


def keys_of(seed: int) -> Mapping[str, jax.Array]:
    """The five keys of a run by name, each a typed key ``[]``."""
    with jax.transfer_guard("allow"):  # JAX itself brings the seed to the device
        return dict(zip(NAMES, jax.random.split(jax.random.key(seed), len(NAMES)), strict=True))


def on_device(number: int) -> jax.Array:
    """The number of a step or an epoch: ``int32 []``, put on the device explicitly."""
    return jax.device_put(np.int32(number))
