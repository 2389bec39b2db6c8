"""RLax, imported without TensorFlow.

RLax needs distrax, and distrax needs TensorFlow Probability's JAX substrate. That one looks for
TensorFlow, finds it where it happens to be installed, and imports all of it only to copy a few
docstrings (``tensorflow_probability/python/internal/backend/jax/_utils.py``); without it the
import takes a third of the time. TensorFlow is therefore hidden while RLax is being imported, and
can be imported as ever afterwards.
"""

from __future__ import annotations

import sys

_hide = "tensorflow" not in sys.modules
if _hide:
    sys.modules["tensorflow"] = None  # type: ignore[assignment]  # Python's own way to say "no"
try:
    import rlax
finally:
    if _hide:
        del sys.modules["tensorflow"]

__all__ = ["rlax"]
