"""From Python to machine code: ``python -m ecotour_jax.machine`` prints JSON.

XLA writes down what each of its passes made of a program when ``XLA_FLAGS`` asks for it as JAX
starts; hence a process of its own, and a directory that is gone afterwards.
"""

# %%
from __future__ import annotations

import re
import struct
import tempfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from ecotour_jax.bookkeeping import run_apart

LENGTH = 64


# %% A function small enough to read
def standardise(x: jax.Array) -> jax.Array:
    """[n] -> [n], with mean 0 and variance 1."""
    centred = x - x.mean()
    return centred / jnp.sqrt((centred**2).mean() + 1e-6)


def stages(length: int = LENGTH) -> dict[str, str]:
    """The function as jaxpr, as StableHLO, as HLO before and after XLA's passes."""
    x = jax.ShapeDtypeStruct((length,), jnp.float32)
    lowered = jax.jit(standardise).lower(x)
    module: Any = lowered.compiler_ir("hlo")
    return {
        "jaxpr": str(jax.make_jaxpr(standardise)(x)),
        "stablehlo": lowered.as_text(),
        "hlo_before": module.as_hlo_text(),
        "hlo_after": without_places(str(lowered.compile().as_text())),
    }


def without_places(text: str) -> str:
    """Leave out where in Python each line comes from: paths of this machine, and long."""
    text = re.sub(r", metadata=\{[^}]*\}", "", text)
    head, _, rest = text.partition("FileNames")
    return head + rest[rest.index("%") :] if rest else text


# %% Have XLA write, and read what was written
def dump() -> dict[str, Any]:
    """Have XLA write everything down, and return what is worth reading.

    Returns:
        ``passes``: name and HLO text of every snapshot that differs from the one before;
        ``llvm``: the optimised LLVM code of the kernel that writes the result;
        ``machine_code``: its instructions as hexadecimal bytes; ``code_bytes``: of all kernels.
    """
    with tempfile.TemporaryDirectory() as name:
        flags = f"--xla_dump_to={name} --xla_dump_hlo_pass_re=.*"
        # a cached program would not be compiled again, and nothing would be written
        run_apart("ecotour_jax.machine", xla_flags=flags, JAX_ENABLE_COMPILATION_CACHE="false")
        files = sorted(Path(name).glob("*jit_standardise*"))
        passes = [
            (_pass_name(file.name), without_places(file.read_text()))
            for file in files
            if re.search(r"\.\d{4}\..*\.txt$", file.name)
        ]
        kernels = [file for file in files if file.suffix == ".o"]
        llvm = [file for file in files if file.name.endswith("ir-with-opt.ll")]
        codes = {file.name: text_section(file.read_bytes()) for file in kernels}
        texts = {file.name: file.read_text() for file in llvm}
    before = [("", ""), *passes[:-1]]
    changed = [now for old, now in zip(before, passes, strict=True) if now[1] != old[1]]
    last = max(texts, key=lambda file: "broadcast" in file) if texts else ""
    stem = last.split(".")[-3] if last else ""
    code = next((raw for file, raw in codes.items() if stem in file), b"")
    return {
        "passes": changed,
        "llvm": texts.get(last, ""),
        "machine_code": code.hex(" "),
        "code_bytes": sum(len(raw) for raw in codes.values()),
        "kernels": len(codes),
    }


def _pass_name(file: str) -> str:
    """The pass in ``…0007.PIPELINE.after_PASS.before_NEXT.txt``, or where a pipeline starts."""
    match = re.search(r"\.(\d{4})\.(.+?)\.after_(.+?)(?:\.before_.*)?\.txt$", file)
    if match is None or match[1] == "0000":
        return "before any pass"
    return match[3] if match[3] != "pipeline-start" else f"start of {match[2]}"


def text_section(elf: bytes) -> bytes:
    """Return the instructions in a 64-bit ELF object file: its section ``.text`` (System V ABI)."""
    (table,) = struct.unpack_from("<Q", elf, 40)
    entry, count, names = struct.unpack_from("<HHH", elf, 58)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + entry * n) for n in range(count)]
    strings = headers[names][4]
    code = b""
    for name, _, _, _, offset, size in headers:
        title = elf[strings + name : elf.index(b"\0", strings + name)]
        if title.startswith((b".text", b".ltext")):
            code += elf[offset : offset + size]
    return code


if __name__ == "__main__":
    # in the child: nothing but to compile, while XLA writes
    jax.jit(standardise).lower(jax.ShapeDtypeStruct((LENGTH,), jnp.float32)).compile()
