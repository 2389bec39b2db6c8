"""Exhibits as strict JSON and back, so that every picture can be drawn again without JAX.

Pixels are kept as ``uint8`` bytes (``{"dtype", "shape", "base64"}``), float ones rounded to the
256 levels that a picture shows; all other arrays are lists of numbers, in which ``null`` stands
for what is not finite. Writing checks the shapes, so that a demo's mistake is named at the
first view and not by a drawing routine long afterwards.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from ecotour import exhibits
from ecotour.errors import ContractError, RecordError
from ecotour.exhibits import Exhibit

Json = Any

_KINDS: dict[str, type] = {
    "images": exhibits.Images,
    "curves": exhibits.Curves,
    "bars": exhibits.Bars,
    "table": exhibits.Table,
    "heatmap": exhibits.Heatmap,
    "paths": exhibits.Paths,
    "graph": exhibits.Graph,
    "code": exhibits.Code,
    "film": exhibits.Film,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def to_json(exhibit: Exhibit, name: str = "exhibit") -> dict[str, Json]:
    """Return ``exhibit`` as a JSON document that `from_json` reads back.

    Args:
        exhibit: Any of `ecotour.exhibits`; its arrays may live on a device.
        name: What the demo calls it, for the message.

    Raises:
        ContractError: It is no exhibit, or its arrays do not have the shapes that it promises.
    """
    kind = _NAMES.get(type(exhibit))
    if kind is None:
        raise ContractError(
            f"exhibit {name!r} is a {type(exhibit).__name__}: return one of "
            f"{', '.join(cls.__name__ for cls in _NAMES)} from ecotour.exhibits"
        )
    try:
        return {"kind": kind, **_WRITERS[kind](exhibit)}
    except (ValueError, TypeError, OverflowError, AttributeError) as error:
        raise ContractError(
            f"exhibit {name!r} ({type(exhibit).__name__}): {error}".splitlines()[0]
        ) from error


def from_json(document: Json) -> Exhibit:
    """Return the exhibit that `to_json` wrote; arrays are NumPy's, ``null`` is NaN.

    Raises:
        RecordError: The document is no exhibit: another kind, a field too few or damaged.
    """
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind not in _KINDS:
        raise RecordError(f"not an exhibit of this version of ecotour: kind {kind!r}")
    cls = _KINDS[kind]
    known = {field.name for field in fields(cls)}
    values = {key: value for key, value in document.items() if key in known}
    try:
        for key, read in _READERS[kind].items():
            if values.get(key) is not None:
                values[key] = read(values[key])
        exhibit: Exhibit = cls(**values)
        to_json(exhibit)  # the same checks on the way back
    except (ValueError, TypeError, KeyError, AttributeError, ContractError) as error:
        raise RecordError(f"damaged exhibit of kind {kind!r}: {error}") from error
    return exhibit


def pixels(values: Any) -> np.ndarray:
    """Return pixels as ``uint8``: float ones are clipped to 0 … 1, a NaN is black."""
    array = np.asarray(values)
    if array.dtype == np.uint8:
        return array
    if array.dtype == np.bool_:
        return array.astype(np.uint8) * np.uint8(255)
    if not np.issubdtype(array.dtype, np.floating) and array.dtype.name != "bfloat16":
        raise ValueError(f"pixels are uint8 in 0 … 255 or float in 0 … 1, not {array.dtype}")
    clean = np.nan_to_num(array.astype(np.float32), nan=0.0)
    return np.rint(np.clip(clean, 0.0, 1.0) * 255).astype(np.uint8)


def _images(exhibit: exhibits.Images) -> dict[str, Json]:
    array = _picture_stack("pixels", exhibit.pixels)
    count = array.shape[0]
    columns = exhibit.columns
    if columns is not None and int(columns) < 1:
        raise ValueError(f"columns is {columns}: at least 1 is needed")
    return {
        "pixels": _encode(array),
        "caption": str(exhibit.caption),
        "columns": None if columns is None else int(columns),
        "labels": _texts("labels", exhibit.labels, count),
    }


def _film(exhibit: exhibits.Film) -> dict[str, Json]:
    speed = float(exhibit.frames_per_second)
    if not 0 < speed < math.inf:
        raise ValueError(f"frames_per_second is {speed}: a positive number is needed")
    return {
        "frames": _encode(_picture_stack("frames", exhibit.frames)),
        "caption": str(exhibit.caption),
        "frames_per_second": speed,
    }


def _curves(exhibit: exhibits.Curves) -> dict[str, Json]:
    lines = {}
    for name, line in exhibit.lines.items():
        x = _floats(f"x of {name!r}", line.x, (None,))
        lines[str(name)] = {
            "x": _list(x),
            "y": _list(_floats(f"y of {name!r}", line.y, x.shape)),
            "low": _optional(f"low of {name!r}", line.low, x.shape),
            "high": _optional(f"high of {name!r}", line.high, x.shape),
        }
    return {
        "lines": lines,
        "caption": str(exhibit.caption),
        "x_label": str(exhibit.x_label),
        "y_label": str(exhibit.y_label),
        "guides": _guides(exhibit.guides),
        "log_x": bool(exhibit.log_x),
        "log_y": bool(exhibit.log_y),
    }


def _bars(exhibit: exhibits.Bars) -> dict[str, Json]:
    names = [str(name) for name in exhibit.names]
    return {
        "names": names,
        "values": _list(_floats("values", exhibit.values, (len(names),))),
        "caption": str(exhibit.caption),
        "y_label": str(exhibit.y_label),
        "errors": _optional("errors", exhibit.errors, (len(names),)),
        "guides": _guides(exhibit.guides),
    }


def _table(exhibit: exhibits.Table) -> dict[str, Json]:
    columns = [str(column) for column in exhibit.columns]
    rows = [[_cell(cell) for cell in row] for row in exhibit.rows]
    for position, row in enumerate(rows):
        if len(row) != len(columns):
            raise ValueError(f"row {position} has {len(row)} cells for {len(columns)} columns")
    return {"columns": columns, "rows": rows, "caption": str(exhibit.caption)}


def _heatmap(exhibit: exhibits.Heatmap) -> dict[str, Json]:
    values = _floats("values", exhibit.values, (None, None))
    rows, columns = values.shape
    cells = exhibit.cells
    if cells is not None:
        cells = [_texts("a row of cells", row, columns) for row in cells]
        if len(cells) != rows:
            raise ValueError(f"cells has {len(cells)} rows, values has {rows}")
    return {
        "values": _list(values),
        "caption": str(exhibit.caption),
        "row_names": _texts("row_names", exhibit.row_names, rows),
        "column_names": _texts("column_names", exhibit.column_names, columns),
        "annotate": bool(exhibit.annotate),
        "cells": cells,
        "row_label": str(exhibit.row_label),
        "column_label": str(exhibit.column_label),
    }


def _paths(exhibit: exhibits.Paths) -> dict[str, Json]:
    x = _floats("x", exhibit.x, (None,))
    y = _floats("y", exhibit.y, (None,))
    targets = exhibit.targets
    return {
        "x": _list(x),
        "y": _list(y),
        "heights": _list(_floats("heights", exhibit.heights, (len(y), len(x)))),
        "paths": {
            str(name): _list(_floats(f"path {name!r}", points, (None, 2)))
            for name, points in exhibit.paths.items()
        },
        "caption": str(exhibit.caption),
        "targets": None if targets is None else _list(_floats("targets", targets, (None, 2))),
        "log_levels": bool(exhibit.log_levels),
    }


def _graph(exhibit: exhibits.Graph) -> dict[str, Json]:
    positions = _floats("positions", exhibit.positions, (None, 2))
    count = len(positions)
    edges = np.asarray(exhibit.edges)
    if edges.size == 0:
        edges = np.zeros((0, 2), np.int64)
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise ValueError(f"edges have shape {edges.shape}, wanted [E, 2]")
    marked = [int(node) for node in np.asarray(exhibit.marked, dtype=np.int64).ravel()]
    for node in [*edges.ravel().tolist(), *marked]:
        if not 0 <= node < count or node != int(node):
            raise ValueError(f"node {node} in edges or marked, but there are nodes 0 … {count - 1}")
    return {
        "positions": _list(positions),
        "edges": edges.astype(np.int64).tolist(),
        "caption": str(exhibit.caption),
        "values": _optional("values", exhibit.values, (count,)),
        "labels": _texts("labels", exhibit.labels, count),
        "marked": marked,
        "directed": bool(exhibit.directed),
    }


def _code(exhibit: exhibits.Code) -> dict[str, Json]:
    return {
        "text": str(exhibit.text),
        "caption": str(exhibit.caption),
        "language": str(exhibit.language),
    }


_WRITERS: dict[str, Callable[[Any], dict[str, Json]]] = {
    "images": _images,
    "curves": _curves,
    "bars": _bars,
    "table": _table,
    "heatmap": _heatmap,
    "paths": _paths,
    "graph": _graph,
    "code": _code,
    "film": _film,
}


def _decode(document: Mapping[str, Any]) -> np.ndarray:
    if document["dtype"] != "uint8":
        raise ValueError(f"pixels of dtype {document['dtype']!r}")
    shape = [int(length) for length in document["shape"]]
    try:
        raw = base64.b64decode(document["base64"], validate=True)
    except binascii.Error as error:
        raise ValueError(f"pixels are not base64 ({error})") from error
    return np.frombuffer(raw, np.uint8).reshape(shape)


def _array(values: Any) -> np.ndarray:
    return np.array(values, dtype=np.float64)  # None becomes NaN


def _lines(document: Mapping[str, Any]) -> dict[str, exhibits.Line]:
    return {
        name: exhibits.Line(
            **{
                k: None if line.get(k) is None else _array(line[k])
                for k in ("x", "y", "low", "high")
            }
        )
        for name, line in document.items()
    }


_READERS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "images": {"pixels": _decode},
    "curves": {"lines": _lines},
    "bars": {"values": _array, "errors": _array},
    "table": {},
    "heatmap": {"values": _array},
    "paths": {
        "x": _array,
        "y": _array,
        "heights": _array,
        "targets": lambda points: _array(points).reshape(-1, 2),
        "paths": lambda paths: {k: _array(v).reshape(-1, 2) for k, v in paths.items()},
    },
    "graph": {
        "positions": lambda points: _array(points).reshape(-1, 2),
        "edges": lambda edges: np.array(edges, dtype=np.int64).reshape(-1, 2),
        "values": _array,
        "marked": tuple,
    },
    "code": {},
    "film": {"frames": _decode},
}


def _encode(array: np.ndarray) -> dict[str, Json]:
    raw = np.ascontiguousarray(array).tobytes()
    return {
        "dtype": "uint8",
        "shape": list(array.shape),
        "base64": base64.b64encode(raw).decode("ascii"),
    }


def _picture_stack(what: str, values: Any) -> np.ndarray:
    array = pixels(values)
    good = array.ndim == 3 or (array.ndim == 4 and array.shape[3] in (1, 3))
    if not good or 0 in array.shape:
        raise ValueError(
            f"{what} have shape {array.shape}, wanted [N, H, W], [N, H, W, 1] or [N, H, W, 3], "
            "none of them 0"
        )
    return array


def _floats(what: str, values: Any, shape: Sequence[int | None]) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype != np.float64:
        array = array.astype(np.float64)
    if array.size == 0 and len(shape) == 2 and shape[1] is not None:
        array = array.reshape(0, shape[1])
    fits = array.ndim == len(shape) and all(
        wanted is None or wanted == length
        for wanted, length in zip(shape, array.shape, strict=True)
    )
    if not fits:
        wanted_text = ", ".join("N" if length is None else str(length) for length in shape)
        raise ValueError(f"{what} has shape {array.shape}, wanted [{wanted_text}]")
    return array


def _optional(what: str, values: Any, shape: Sequence[int | None]) -> Json:
    return None if values is None else _list(_floats(what, values, shape))


def _list(array: np.ndarray) -> Json:
    if np.isfinite(array).all():
        return array.tolist()
    return np.where(np.isfinite(array), array.astype(object), None).tolist()


def _guides(guides: Mapping[str, float]) -> dict[str, float]:
    found = {str(legend): float(height) for legend, height in guides.items()}
    for legend, height in found.items():
        if not math.isfinite(height):
            raise ValueError(f"guide {legend!r} is at {height}: a finite height is needed")
    return found


def _texts(what: str, texts: Sequence[str] | None, count: int) -> list[str] | None:
    if texts is None:
        return None
    found = [str(text) for text in texts]
    if len(found) != count:
        raise ValueError(f"{what} has {len(found)} texts, wanted {count}")
    return found


def _cell(cell: Any) -> str | float | int | bool | None:
    if cell is None or isinstance(cell, str | bool | int):
        return cell
    value = np.asarray(cell)
    if value.ndim:
        raise ValueError(f"a cell has shape {value.shape}: cells are texts and single numbers")
    if np.issubdtype(value.dtype, np.bool_):
        return bool(value)
    if np.issubdtype(value.dtype, np.integer):
        return int(value)
    as_float = float(value)
    return as_float if math.isfinite(as_float) else None
