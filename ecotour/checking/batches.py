"""The first batch of a run, as the runner cuts it."""

from __future__ import annotations

from typing import Any

import jax

from ecotour import datasets
from ecotour.checking.table import Fault
from ecotour.contract.demo import Program
from ecotour.errors import DataError, EcotourError
from ecotour.running.feed import Feed


def batch_of(program: Program, key: jax.Array) -> Any:
    """The batch of step 1 from the embedded data, or ``None`` for a program without data."""
    if "train" not in program.data:
        return None
    try:
        data = datasets.resolve(program.data["train"], "embedded", None)
        feed = Feed.of(data, program.batch_size, key)
    except DataError as error:
        raise Fault("needs", str(error)) from error
    except EcotourError as error:
        raise Fault("run-fails", str(error)) from error
    return feed.batch_at(1)
