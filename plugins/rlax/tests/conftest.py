"""Strict dtype promotion, and the warnings of others, one by one."""

from __future__ import annotations

import jax
import pytest

jax.config.update("jax_numpy_dtype_promotion", "strict")

OF_OTHERS = [
    # TensorFlow Probability, which distrax needs, still uses a name that JAX will remove
    "ignore:jax.core.pytype_aval_mappings is deprecated:DeprecationWarning",
    # RLax announces that its distributions will be replaced by distrax some day; its own losses
    # (`policy_gradient_loss`, `entropy_loss`) use them
    "ignore:Rlax softmax will be deprecated:PendingDeprecationWarning",
    "ignore:Rlax epsilon_greedy will be deprecated:PendingDeprecationWarning",
    "ignore:Rlax categorical_importance_sampling_ratios will be:PendingDeprecationWarning",
    "ignore:Rlax categorical_kl_divergence will be deprecated:PendingDeprecationWarning",
]


def pytest_configure(config: pytest.Config) -> None:
    for line in OF_OTHERS:
        config.addinivalue_line("filterwarnings", line)
