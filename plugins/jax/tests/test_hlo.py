"""Reading HLO: a module written by hand, and the one that XLA makes here and now."""

from __future__ import annotations

import numpy as np

from ecotour_jax import hlo, machine

BY_HAND = """
HloModule jit_f, entry_computation_layout={(f32[8]{0})->f32[8]{0}}

%inner (p.0: f32[8], p.1: f32[]) -> f32[8] {
  %p.0 = f32[8]{0} parameter(0)
  %p.1 = f32[] parameter(1)
  %b = f32[8]{0} broadcast(%p.1), dimensions={}
  ROOT %m = f32[8]{0} multiply(%p.0, %b)
}

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  %c = f32[] constant(2)
  %scale_fusion.3 = f32[8]{0} fusion(%x, %c), kind=kLoop, calls=%inner
  ROOT %add.1 = f32[8]{0} add(%scale_fusion.3, %x)
}
"""


def test_a_module_by_hand() -> None:
    found, entry = hlo.computations(BY_HAND)
    assert entry == "main"
    assert [one.op for one in found["inner"]] == ["parameter", "parameter", "broadcast", "multiply"]
    assert found["main"][2].operands == ("x", "c")
    assert hlo.operations(BY_HAND) == {"broadcast": 1, "multiply": 1, "add": 1}
    assert hlo.kernels(BY_HAND) == 2
    # the fusion reads 8 + 1 numbers and writes 8, the addition reads 16 and writes 8
    assert hlo.bytes_moved(BY_HAND) == 4 * (17 + 24)


def test_what_a_pass_changed() -> None:
    later = BY_HAND.replace("multiply(", "divide(")
    assert hlo.difference(BY_HAND, later) == "+1 divide, -1 multiply"
    assert "same operations" in hlo.difference(later, later)


def test_the_drawing_goes_downwards() -> None:
    found, entry = hlo.computations(BY_HAND)
    positions, edges, labels = hlo.layout(found[entry])
    assert edges.tolist() == [[0, 2], [1, 2], [2, 3], [0, 3]]
    assert all(positions[source, 1] > positions[target, 1] for source, target in edges)
    assert len(np.unique(positions, axis=0)) == len(positions)
    assert labels[2] == "scale\nf32[8]"


def test_standardise_is_what_it_says() -> None:
    x = np.random.default_rng(0).normal(3.0, 2.0, 64).astype(np.float32)
    got = np.asarray(machine.standardise(x))
    np.testing.assert_allclose(got, (x - x.mean()) / np.sqrt(x.var() + 1e-6), rtol=1e-5, atol=1e-6)


def test_the_stages_are_of_the_same_program() -> None:
    texts = machine.stages()
    before = hlo.operations(texts["hlo_before"])
    # two means, so two sums and two divisions; the third division is by the deviation
    assert (before["reduce"], before["divide"], before["sqrt"]) == (2, 3, 1)
    assert "stablehlo.reduce" in texts["stablehlo"]
    assert "reduce_sum" in texts["jaxpr"]
    assert hlo.kernels(texts["hlo_after"]) < hlo.kernels(texts["hlo_before"])
    assert hlo.bytes_moved(texts["hlo_after"]) < hlo.bytes_moved(texts["hlo_before"])
    for text in texts.values():
        assert ".py" not in text  # no path of this machine


def test_the_dump() -> None:
    dumped = machine.dump()
    names = [name for name, _ in dumped["passes"]]
    assert names[0] == "before any pass"
    assert any("fusion" in name for name in names)
    counts = [hlo.kernels(text) for _, text in dumped["passes"]]
    assert counts[-1] < counts[0]
    assert "define" in dumped["llvm"]
    code = bytes.fromhex(dumped["machine_code"])
    assert 0 < len(code) <= dumped["code_bytes"]
    assert dumped["kernels"] >= 2
