# %% [markdown]
# # Careful policy improvement
#
# A policy gradient is right for a very small step only. PPO and V-MPO take several gradient steps
# on the same episodes and each has its own way not to go too far: PPO stops paying once an
# action's probability has changed by 20%, V-MPO limits the Kullback-Leibler divergence from the
# policy that acted. For both the advantages are computed once, with the parameters that acted
# (`older`), and stay what they are.

# %%
"""PPO and V-MPO, from RLax's losses."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ecotour_rlax.imports import rlax
from ecotour_rlax.losses import ENTROPY, LAMBDA, Experience, importance_ratios


# %%
def advantages(e: Experience) -> Any:
    """Generalised advantages of the parameters that acted, ``float32 [B, T]``."""
    return jax.vmap(rlax.truncated_generalized_advantage_estimation, in_axes=(0, 0, None, 0, None))(
        e.played.reward, e.played.discount, LAMBDA, e.older.value, True
    )


def critic(e: Experience, advantage: jax.Array) -> jax.Array:
    """Move the value towards (value that acted + advantage)."""
    return jnp.mean(rlax.l2_loss(e.now.value[:, :-1], e.older.value[:, :-1] + advantage))


# %% [markdown]
# ## PPO


# %%
CLIP = 0.2


def ppo(e: Experience) -> jax.Array:
    """Clipped surrogate objective (Schulman et al., 2017), advantages normalised."""
    advantage = advantages(e)
    spread = jnp.std(advantage) + 1e-6
    policy = jax.vmap(rlax.clipped_surrogate_pg_loss, in_axes=(0, 0, None))(
        importance_ratios(e), (advantage - jnp.mean(advantage)) / spread, CLIP
    )
    entropy = jax.vmap(rlax.entropy_loss)(e.now.preferences[:, :-1], jnp.ones_like(advantage))
    return jnp.mean(policy + ENTROPY * entropy) + critic(e, advantage)


# %% [markdown]
# ## V-MPO
# The better half of the steps is imitated, each by exp(advantage / temperature). Temperature and
# the price of divergence are Lagrange multipliers; they are learned like any parameter.


# %%
def vmpo(e: Experience) -> jax.Array:
    """V-MPO (Song et al., 2019)."""
    logits, action = e.now.preferences[:, :-1], e.played.action
    acted = jnp.log(e.played.policy[:, :-1])
    advantage = advantages(e)
    loss, _ = rlax.vmpo_loss(
        rlax.softmax().logprob(action, logits),
        advantage,
        temperature_constraint=rlax.LagrangePenalty(e.duals["temperature"], jnp.float32(0.1)),
        kl_constraints=[
            (
                rlax.categorical_kl_divergence(acted, logits),
                rlax.LagrangePenalty(e.duals["alpha"], jnp.float32(0.02)),
            )
        ],
        # The default clips at 1e-10, where the gradient is zero: a multiplier that gets there
        # stays there.
        projection_operator=jax.nn.softplus,
    )
    return jnp.mean(loss) + critic(e, advantage)
