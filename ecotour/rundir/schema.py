"""Whether a ``run.json`` is one: its fields against ``run.schema.json``, the published JSON Schema.

A walker for the few words of JSON Schema that stand in that file, since all libraries for it take
longer to import than a record takes to read; a test compares it with one of them.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("run.schema.json")
DEEPEST = 50
"""So deep may values be nested, of which the schema says nothing: far less than Python can walk."""

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,),
    "null": (type(None),), "number": (int, float), "integer": (int, float),
}  # fmt: skip


def fault(document: Any) -> str:
    """What is wrong with a record, in one line: the first field that is; empty for a sound one.

    Args:
        document: What ``run.json`` holds, as `json.loads` gives it.
    """
    if _too_deep(document):
        return f"it is nested more than {DEEPEST} levels deep"
    return next(_faults(document, _schema(), ""), "")


@functools.cache
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return schema


def _faults(value: Any, schema: Mapping[str, Any], place: str) -> Iterator[str]:
    if "$ref" in schema:
        schema = _schema()["$defs"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:  # the last one says what is wrong
        found = [list(_faults(value, one, place)) for one in schema["anyOf"]]
        yield from found[-1] if all(found) else ()
        return
    if not _fits(value, schema):
        shown = json.dumps(value)
        shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
        yield f"{place or 'the whole'} is {shown}, not {schema['description']}"
        return
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{place or 'it'} lacks {name}"
        for name, item in value.items():
            inside = known.get(name, others)
            if inside:
                yield from _faults(item, inside, f"{place}.{name}" if place else name)
    elif isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            yield from _faults(item, schema["items"], f"{place}[{number}]")


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether ``value`` by itself, whatever it holds, is what ``schema`` says."""
    if "const" in schema:
        return type(value) is not bool and bool(value == schema["const"])
    if "enum" in schema:
        return value in schema["enum"]
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(_is(value, type_) for type_ in types):
        return False
    if isinstance(value, str):
        return re.search(schema.get("pattern", ""), value) is not None
    if isinstance(value, int | float) and not isinstance(value, bool) and "minimum" in schema:
        return bool(schema["minimum"] <= value <= schema["maximum"])
    return True


def _is(value: Any, type_: str) -> bool:
    if isinstance(value, bool):
        return type_ == "boolean"
    if type_ == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[type_])


def _too_deep(document: Any) -> bool:
    level = [document]
    for _ in range(DEEPEST):
        level = [
            item
            for value in level
            for item in (
                value.values()
                if isinstance(value, dict)
                else value
                if isinstance(value, list)
                else ()
            )
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True
