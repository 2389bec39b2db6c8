"""Exhibits as strict JSON and back, so that every picture can be drawn again without JAX.

Pixels are kept as ``uint8`` bytes (``{"dtype", "shape", "base64"}``), float ones rounded to the
256 levels that a picture shows; all other arrays are lists of numbers, in which ``null`` stands
for what is not finite. Writing checks the shapes, so that a demo's mistake is named at the
first view and not by a drawing routine long afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from ecotour.contract import exhibits
from ecotour.contract.exhibits import Exhibit
from ecotour.errors import ContractError, RecordError
from ecotour.rundir import values_json

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
    if not isinstance(kind, str) or kind not in _KINDS:
        raise RecordError(f"not an exhibit of this version of ecotour: kind {kind!r}")
    try:
        # twice, so that whatever passed the checks also has the types that they make
        return _read(kind, _WRITERS[kind](_read(kind, document)))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        reason = str(error).splitlines()[:1]
        raise RecordError(f"damaged exhibit of kind {kind!r}: {''.join(reason)}") from error


def _read(kind: str, document: Mapping[str, Json]) -> Exhibit:
    cls = _KINDS[kind]
    known = {field.name for field in fields(cls)}
    values = {key: value for key, value in document.items() if key in known}
    for key, read in _READERS[kind].items():
        if values.get(key) is not None:
            values[key] = read(values[key])
    exhibit: Exhibit = cls(**values)
    return exhibit


def _images(exhibit: exhibits.Images) -> dict[str, Json]:
    array = values_json.picture_stack("pixels", exhibit.pixels)
    count = array.shape[0]
    columns = exhibit.columns
    if columns is not None and int(columns) < 1:
        raise ValueError(f"columns is {columns}: at least 1 is needed")
    return {
        "pixels": values_json.encode_pixels(array),
        "caption": str(exhibit.caption),
        "columns": None if columns is None else int(columns),
        "labels": values_json.texts("labels", exhibit.labels, count),
    }


def _film(exhibit: exhibits.Film) -> dict[str, Json]:
    speed = float(exhibit.frames_per_second)
    if not 0 < speed < math.inf:
        raise ValueError(f"frames_per_second is {speed}: a positive number is needed")
    return {
        "frames": values_json.encode_pixels(values_json.picture_stack("frames", exhibit.frames)),
        "caption": str(exhibit.caption),
        "frames_per_second": speed,
    }


def _curves(exhibit: exhibits.Curves) -> dict[str, Json]:
    lines = {}
    for name, line in exhibit.lines.items():
        x = values_json.floats(f"x of {name!r}", line.x, (None,))
        lines[str(name)] = {
            "x": values_json.as_list(x),
            "y": values_json.as_list(values_json.floats(f"y of {name!r}", line.y, x.shape)),
            "low": values_json.optional(f"low of {name!r}", line.low, x.shape),
            "high": values_json.optional(f"high of {name!r}", line.high, x.shape),
        }
    return {
        "lines": lines,
        "caption": str(exhibit.caption),
        "x_label": str(exhibit.x_label),
        "y_label": str(exhibit.y_label),
        "guides": values_json.guides(exhibit.guides),
        "log_x": bool(exhibit.log_x),
        "log_y": bool(exhibit.log_y),
    }


def _bars(exhibit: exhibits.Bars) -> dict[str, Json]:
    names = [str(name) for name in exhibit.names]
    return {
        "names": names,
        "values": values_json.as_list(values_json.floats("values", exhibit.values, (len(names),))),
        "caption": str(exhibit.caption),
        "y_label": str(exhibit.y_label),
        "errors": values_json.optional("errors", exhibit.errors, (len(names),)),
        "guides": values_json.guides(exhibit.guides),
    }


def _table(exhibit: exhibits.Table) -> dict[str, Json]:
    columns = [str(column) for column in exhibit.columns]
    rows = [[values_json.cell(cell) for cell in row] for row in exhibit.rows]
    for position, row in enumerate(rows):
        if len(row) != len(columns):
            raise ValueError(f"row {position} has {len(row)} cells for {len(columns)} columns")
    return {"columns": columns, "rows": rows, "caption": str(exhibit.caption)}


def _heatmap(exhibit: exhibits.Heatmap) -> dict[str, Json]:
    values = values_json.floats("values", exhibit.values, (None, None))
    rows, columns = values.shape
    cells = exhibit.cells
    if cells is not None:
        cells = [values_json.texts("a row of cells", row, columns) or [] for row in cells]
        if len(cells) != rows:
            raise ValueError(f"cells has {len(cells)} rows, values has {rows}")
    return {
        "values": values_json.as_list(values),
        "caption": str(exhibit.caption),
        "row_names": values_json.texts("row_names", exhibit.row_names, rows),
        "column_names": values_json.texts("column_names", exhibit.column_names, columns),
        "annotate": bool(exhibit.annotate),
        "cells": cells,
        "row_label": str(exhibit.row_label),
        "column_label": str(exhibit.column_label),
    }


def _paths(exhibit: exhibits.Paths) -> dict[str, Json]:
    x = values_json.floats("x", exhibit.x, (None,))
    y = values_json.floats("y", exhibit.y, (None,))
    return {
        "x": values_json.as_list(x),
        "y": values_json.as_list(y),
        "heights": values_json.optional("heights", exhibit.heights, (len(y), len(x))),
        "paths": {
            str(name): values_json.as_list(values_json.floats(f"path {name!r}", points, (None, 2)))
            for name, points in exhibit.paths.items()
        },
        "caption": str(exhibit.caption),
        "targets": values_json.optional("targets", exhibit.targets, (None, 2)),
        "log_levels": bool(exhibit.log_levels),
    }


def _graph(exhibit: exhibits.Graph) -> dict[str, Json]:
    positions = values_json.floats("positions", exhibit.positions, (None, 2))
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
        "positions": values_json.as_list(positions),
        "edges": edges.astype(np.int64).tolist(),
        "caption": str(exhibit.caption),
        "values": values_json.optional("values", exhibit.values, (count,)),
        "labels": values_json.texts("labels", exhibit.labels, count),
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


def _lines(document: Mapping[str, Any]) -> dict[str, exhibits.Line]:
    return {
        name: exhibits.Line(
            **{
                k: None if line.get(k) is None else values_json.array(line[k])
                for k in ("x", "y", "low", "high")
            }
        )
        for name, line in document.items()
    }


_READERS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "images": {"pixels": values_json.decode_pixels},
    "curves": {"lines": _lines},
    "bars": {"values": values_json.array, "errors": values_json.array},
    "table": {},
    "heatmap": {"values": values_json.array},
    "paths": {
        "x": values_json.array,
        "y": values_json.array,
        "heights": values_json.array,
        "targets": lambda points: values_json.array(points).reshape(-1, 2),
        "paths": lambda paths: {k: values_json.array(v).reshape(-1, 2) for k, v in paths.items()},
    },
    "graph": {
        "positions": lambda points: values_json.array(points).reshape(-1, 2),
        "edges": lambda edges: np.array(edges, dtype=np.int64).reshape(-1, 2),
        "values": values_json.array,
        "marked": tuple,
    },
    "code": {},
    "film": {"frames": values_json.decode_pixels},
}
