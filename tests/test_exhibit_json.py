"""Exhibits to strict JSON and back: the same values, and a clear word on what is none."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import synthetic

from ecotour import drawing
from ecotour import exhibits as ex
from ecotour.errors import ContractError, RecordError
from ecotour.rundir.exhibit_json import from_json, to_json
from ecotour.rundir.values_json import pixels

NAN, INF = math.nan, math.inf


def every_kind() -> dict[str, ex.Exhibit]:
    rng = np.random.default_rng(0)
    x = np.arange(5.0)
    return {
        "images": ex.Images(synthetic.digits(6), "Real digits", columns=3, labels=list("abcdef")),
        "colour": ex.Images(rng.integers(0, 256, (2, 4, 5, 3)).astype(np.uint8), "Noise"),
        "curves": ex.Curves(
            {"a": ex.Line(x, [1.0, NAN, 3.0, INF, 5.0]), "b": ex.Line(x, x, x - 1, x + 1)},
            "Two curves", x_label="epoch", y_label="loss", guides={"ln 2": math.log(2)},
            log_y=True,
        ),
        "bars": ex.Bars(["a", "b"], [1, 2.5], "Two bars", errors=[0.1, NAN], guides={"half": 0.5}),
        "table": ex.Table(["a", "b"], [["x", 1], [None, 2.5], [True, False]], "A table"),
        "heatmap": ex.Heatmap([[1, NAN], [3, 4]], "Cells", row_names=["r", "s"], annotate=True),
        "cells": ex.Heatmap(np.eye(2), "Words", cells=[["a", "b"], ["c", "d"]]),
        "paths": ex.Paths(x, x[:3], rng.random((3, 5)), {"p": rng.random((4, 2))}, "A path",
                          targets=[[1, 1]]),
        "graph": ex.Graph(rng.random((3, 2)), [[0, 1], [1, 2]], "A graph", values=[0, 0.5, 1],
                          labels=["u", "v", "w"], marked=(0, 2), directed=True),
        "lonely": ex.Graph(np.zeros((1, 2)), [], "One node and no edge"),
        "code": ex.Code("let a = 1 in (a,)\n\t<b>", "A jaxpr", language="text"),
        "film": ex.Film(synthetic.digits(4), "Four frames", frames_per_second=2.5),
    }  # fmt: skip


@pytest.mark.parametrize("name", every_kind())
def test_what_comes_back_is_what_went_in(name: str) -> None:
    exhibit = every_kind()[name]
    document = to_json(exhibit)
    text = json.dumps(document, allow_nan=False)
    again = from_json(json.loads(text))
    assert type(again) is type(exhibit)
    assert to_json(again) == document
    assert again.caption == exhibit.caption


def test_pixels_survive_to_the_bit() -> None:
    digits = synthetic.digits(6)
    again = from_json(json.loads(json.dumps(to_json(ex.Images(digits, "")))))
    assert isinstance(again, ex.Images)
    np.testing.assert_array_equal(again.pixels, digits)
    assert np.asarray(again.pixels).dtype == np.uint8


def test_float_pixels_become_the_nearest_of_256_levels() -> None:
    np.testing.assert_array_equal(
        pixels(np.array([-1.0, 0.0, 0.5, 1.0, 2.0, NAN])), np.array([0, 0, 128, 255, 255, 0])
    )
    assert pixels(np.arange(256) / 255).tolist() == list(range(256))


def test_gaps_are_null_in_json_and_nan_afterwards() -> None:
    document = to_json(ex.Curves({"a": ex.Line([1, 2, 3], [1.0, NAN, -INF])}, ""))
    assert document["lines"]["a"]["y"] == [1.0, None, None]
    again = from_json(document)
    assert isinstance(again, ex.Curves)
    np.testing.assert_array_equal(again.lines["a"].y, [1.0, NAN, NAN])


def test_jax_arrays_are_welcome() -> None:
    import jax.numpy as jnp

    half = jnp.full((1, 2, 2), 0.5, jnp.bfloat16)
    assert (
        to_json(ex.Images(half, ""))["pixels"]
        == to_json(ex.Images(np.full((1, 2, 2), 128, np.uint8), ""))["pixels"]
    )
    table = ex.Table(["a"], [[jnp.float32(1.5)], [jnp.int32(3)]], "")
    assert to_json(table)["rows"] == [[1.5], [3]]


@pytest.mark.parametrize(
    ("exhibit", "says"),
    [
        (ex.Images(np.zeros((28, 28)), ""), r"pixels have shape \(28, 28\)"),
        (ex.Images(np.zeros((2, 28, 28, 4)), ""), "pixels have shape"),
        (ex.Images(np.zeros((0, 28, 28)), ""), "pixels have shape"),
        (ex.Images(np.zeros((2, 3, 3), np.int8), ""), "not int8"),
        (ex.Images(np.zeros((2, 3, 3)), "", labels=["a"]), "labels has 1 texts, wanted 2"),
        (ex.Images(np.zeros((2, 3, 3)), "", columns=0), "columns is 0"),
        (ex.Curves({"a": ex.Line([1, 2], [1.0])}, ""), "y of 'a' has shape"),
        (ex.Curves({}, "", guides={"g": NAN}), "guide 'g' is at nan"),
        (ex.Bars(["a"], [1, 2], ""), "values has shape"),
        (ex.Table(["a", "b"], [[1]], ""), "row 0 has 1 cells for 2 columns"),
        (ex.Table(["a"], [[np.zeros(2)]], ""), "a cell has shape"),
        (ex.Heatmap([1.0, 2.0], ""), "values has shape"),
        (ex.Heatmap(np.eye(2), "", cells=[["a", "b"]]), "cells has 1 rows"),
        (ex.Paths([0, 1], [0], np.zeros((2, 1)), {}, ""), "heights has shape"),
        (ex.Graph(np.zeros((2, 2)), [[0, 2]], ""), "node 2 in edges"),
        (ex.Graph(np.zeros((2, 2)), [[0, 1]], "", marked=(-1,)), "node -1 in edges or marked"),
        (ex.Film(np.zeros((2, 3, 3)), "", frames_per_second=0), "frames_per_second is 0"),
        ("just a text", "is a str: return one of Images"),
    ],
)
def test_a_mistake_is_named_in_one_line(exhibit: Any, says: str) -> None:
    with pytest.raises(ContractError, match=says) as raised:
        to_json(exhibit, "samples")
    assert "'samples'" in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", every_kind())
def test_a_damaged_document_is_refused_and_never_drawn(name: str) -> None:
    document = to_json(every_kind()[name])
    for key in document:
        for damage in ("nonsense", {"dtype": "uint8"}, [[1], [2, 3]], -1):
            message = ""
            try:
                drawing.png(from_json(document | {key: damage}))  # it may happen to be legal
            except RecordError as error:
                message = str(error)
            assert "\n" not in message


def test_other_kinds_and_other_things_are_refused() -> None:
    for document in (None, [], {}, {"kind": "sculpture"}, {"kind": "code"}, {"kind": ["code"]}):
        with pytest.raises(RecordError):
            from_json(document)
    broken = to_json(ex.Images(synthetic.digits(1), ""))
    broken["pixels"]["base64"] = broken["pixels"]["base64"][:-8]
    with pytest.raises(RecordError, match="damaged exhibit of kind 'images'"):
        from_json(broken)
