"""The test kit, as an author of a demo uses it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import faulty
import pytest

from ecotour import events
from ecotour.discovery import registry
from ecotour.testing import Ran, assert_contract


def test_only_demos_hides_what_is_installed(only_demos: Path) -> None:
    assert registry.find() == []


def test_a_throwaway_plugin_is_found_run_and_gone_after(
    throwaway: Callable[..., str], run_demo: Callable[..., Ran]
) -> None:
    throwaway("means", faulty.source(""), distribution="all-means", version="3.1")
    assert [entry.provenance for entry in registry.find()] == ["all-means 3.1"]
    ran = run_demo("means", "--steps", "3", "--rate", "0.25")
    assert (ran.code, ran.error) == (0, "")
    assert ran.record["distribution"] == "all-means 3.1"
    assert ran.record["config"]["rate"] == 0.25
    assert isinstance(ran.events[0], events.Started)
    assert ran.events[0].plan.distribution == "all-means 3.1"
    assert isinstance(ran.events[-1], events.Ended)
    assert [e.step for e in ran.events if isinstance(e, events.Reported)] == [1, 2, 3]
    again = run_demo("means", "--rate", "-1")
    assert again.code == 2
    assert "--rate" in again.error
    assert again.record == {}


def test_what_the_fixtures_did_is_undone() -> None:
    assert {"gan", "optax"} <= {entry.name for entry in registry.find()}


def test_assert_contract_names_each_finding_in_a_line(tmp_path: Path) -> None:
    file = tmp_path / "prints.py"
    file.write_text(faulty.source("prints"))
    _, demo = registry.load_file(file)
    with pytest.raises(AssertionError) as caught:
        assert_contract(demo)
    (line,) = str(caught.value).strip().splitlines()
    assert line.startswith("prints: The demo prints")
    file.write_text(faulty.source(""))
    _, demo = registry.load_file(file)
    report = assert_contract(demo, "--rate", "0.25")
    assert report.unproved == {"devices": "this process has one device"}
