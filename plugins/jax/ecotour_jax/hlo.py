"""Reading XLA's text: operations by name, what a pass changed, and a drawing of the graph."""

# %%
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_INSTRUCTION = re.compile(
    r"^\s*(?P<root>ROOT )?%?(?P<name>[\w.\-]+) = (?P<shape>\S+) (?P<op>[\w\-]+)\((?P<operands>.*)$"
)
_COMPUTATION = re.compile(r"^(?P<entry>ENTRY )?%?(?P<name>[\w.\-]+)\b.*\{$")
_BYTES = {"pred": 1, "s8": 1, "u8": 1, "f16": 2, "bf16": 2, "s32": 4, "u32": 4, "f32": 4, "f64": 8}

SILENT = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast"}
"""Instructions that compute nothing."""


@dataclass(frozen=True)
class Instruction:
    """One line of HLO: ``name = shape op(operands)``."""

    name: str
    shape: str
    op: str
    operands: tuple[str, ...]


def computations(text: str) -> tuple[dict[str, list[Instruction]], str]:
    """Read a module: the instructions of each computation by its name, and the entry's name."""
    found: dict[str, list[Instruction]] = {}
    entry, current = "", ""
    for line in text.splitlines():
        if (head := _COMPUTATION.match(line)) and not line.startswith("HloModule"):
            current = head["name"]
            found[current] = []
            entry = current if head["entry"] else entry
        elif current and (match := _INSTRUCTION.match(line)):
            inside = match["operands"].split(")", 1)[0]
            names = tuple(re.findall(r"%?([A-Za-z_][\w.\-]*)(?=,|$)", inside.replace(" ", "")))
            operands = () if match["op"] in ("parameter", "constant") else names
            shape = re.sub(r"\{.*?\}", "", match["shape"])
            found[current].append(Instruction(match["name"], shape, match["op"], operands))
    return found, entry


def operations(text: str) -> Counter[str]:
    """How often each operation that computes something stands in a module, inside fusions too."""
    found, _ = computations(text)
    every = (one.op for body in found.values() for one in body)
    return Counter(op for op in every if op not in SILENT and op != "fusion")


def difference(old: str, new: str) -> str:
    """Which operations came and went, e.g. ``+2 multiply, -2 divide``; or that none did."""
    before, after = operations(old), operations(new)
    changes = {name: after[name] - before[name] for name in sorted(before | after)}
    words = [f"{count:+d} {name}" for name, count in changes.items() if count]
    return ", ".join(words) or "the same operations, arranged anew"


def kernels(text: str) -> int:
    """How many operations the entry carries out one after the other: what is not fused."""
    found, entry = computations(text)
    return sum(one.op not in SILENT for one in found[entry])


def bytes_moved(text: str) -> int:
    """Bytes that the entry's operations read and write: what fusion is there to save."""
    found, entry = computations(text)
    sizes = {one.name: _size(one.shape) for one in found[entry]}
    moving = (one for one in found[entry] if one.op not in SILENT)
    return sum(sizes[one.name] + sum(sizes.get(name, 0) for name in one.operands) for one in moving)


def _size(shape: str) -> int:
    match = re.match(r"(\w+)\[([\d,]*)\]", shape)
    if not match:
        return 0
    return _BYTES.get(match[1], 4) * int(np.prod([int(n) for n in match[2].split(",") if n]))


# %% A drawing: operands above, results below
def layout(body: Sequence[Instruction]) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Place a computation's instructions in layers.

    A layer is the longest way from an input. Within a layer nodes are ordered by the mean place of
    their operands (the barycentre heuristic of Sugiyama, Tagawa and Toda, 1981).

    Returns:
        Positions ``[N, 2]``, edges ``[E, 2]`` from operand to user, and labels.
    """
    index = {one.name: number for number, one in enumerate(body)}
    edges = [(index[o], index[one.name]) for one in body for o in one.operands if o in index]
    layer = [0] * len(body)
    for _ in body:  # at most one round for each layer
        for source, target in edges:
            layer[target] = max(layer[target], layer[source] + 1)
    # an input stands just above its first user, not at the top of the page
    for number in range(len(body)):
        users = [layer[target] for source, target in edges if source == number]
        if layer[number] == 0 and users:
            layer[number] = min(users) - 1
    place = np.zeros(len(body))
    for level in range(min(layer), max(layer) + 1):
        members = [n for n in range(len(body)) if layer[n] == level]
        above = {n: [place[s] for s, t in edges if t == n] for n in members}
        members.sort(key=lambda n: (float(np.mean(above[n])) if above[n] else 0.0, n))
        for order, number in enumerate(members):
            place[number] = order - (len(members) - 1) / 2
    # layers in turn a little left and right, so that a long chain does not run through its labels
    shifted = place + 0.3 * (np.array(layer) % 2)
    positions = np.stack([shifted, -np.array(layer, float)], axis=1)
    labels = [f"{_title(one)}\n{one.shape}" for one in body]
    return positions, np.array(edges, int).reshape(-1, 2), labels


def _title(one: Instruction) -> str:
    # XLA names a fusion after what is in it
    if one.op != "fusion":
        return one.op
    return one.name.split(".")[0].removesuffix("_fusion").removeprefix("wrapped_")
