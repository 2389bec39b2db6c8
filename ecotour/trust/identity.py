"""What a demo is at this moment: its words, its flags, its source, the shapes of its states."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecotour.trust import sources

if TYPE_CHECKING:
    from ecotour.contract.demo import Demo, Program, Source
    from ecotour.discovery.registry import Entry


@dataclass(frozen=True)
class Identity:
    """Everything of a demo that can be told without running it.

    Attributes:
        name: What users type.
        distribution: Who provides it, with the version.
        module: Its module's name, or nothing for a plain file.
        file: The plain file, or nothing for an installed demo.
        summary: One line.
        teaches: A paragraph.
        flags: As `ecotour.contract.flags.describe` gives them.
        source_hash: The SHA-256 of the file with the hook, as a run's record has it.
        sources: The fingerprint of each file, see `ecotour.trust.sources`.
        shapes: By named step, by the leaf's path in the state: ``float32[5,5,1,8]``. A named step
            whose state cannot be traced is left out.
    """

    name: str
    distribution: str
    module: str | None
    file: Path | None
    summary: str
    teaches: str
    flags: list[dict[str, Any]]
    source_hash: str
    sources: Mapping[str, str]
    shapes: Mapping[str, Mapping[str, str]]


def identify(entry: Entry, demo: Demo, program: Program) -> Identity:
    """Look at a demo. Nothing is computed: shapes come from abstract values.

    Raises:
        PluginError: Its source cannot be read.
    """
    from ecotour.contract import flags
    from ecotour.discovery import registry

    plain = entry.version == registry.FILE
    file = Path(entry.distribution) if plain else sources.module_file(entry.module)
    return Identity(
        name=entry.name,
        distribution=file.name if plain else entry.provenance,
        module=None if plain else entry.module,
        file=file.resolve() if plain else None,
        summary=demo.summary,
        teaches=demo.teaches,
        flags=[dataclasses.asdict(flag) for flag in flags.describe(demo.config)],
        source_hash=hashlib.sha256(file.read_bytes()).hexdigest(),
        sources=sources.fingerprints(file, None if plain else entry.module),
        shapes=shapes(program),
    )


def shapes(program: Program) -> dict[str, dict[str, str]]:
    """Shape and dtype of every leaf of every compiled step's state before step 1."""
    import jax

    key = jax.eval_shape(lambda: jax.random.key(0))
    train = program.data.get("train")
    batch = None if train is None else _abstract_batch(train, program.batch_size or 1)
    found = {}
    for name, step in program.steps.items():
        if not step.compiled:
            continue
        try:
            state = jax.eval_shape(step.init, key, batch)
        except Exception:  # noqa: BLE001 - an init that needs real values has shapes all the same
            continue
        leaves = jax.tree_util.tree_leaves_with_path(state)
        found[name] = {
            jax.tree_util.keystr(path): f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]"
            for path, leaf in leaves
        }
    return found


def _abstract_batch(source: Source, batch_size: int) -> dict[str, Any]:
    import jax
    import numpy as np

    from ecotour.contract.demo import Digits

    if isinstance(source, Digits):
        arrays = {"image": ((28, 28, 1), np.uint8), "label": ((), np.uint8)}
    else:
        arrays = {name: (a.shape[1:], a.dtype.type) for name, a in source.arrays.items()}
    return {
        name: jax.ShapeDtypeStruct((batch_size, *shape), dtype)
        for name, (shape, dtype) in arrays.items()
    }
