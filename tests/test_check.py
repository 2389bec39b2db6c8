"""Each finding of a check against a demo that has exactly that fault; and a sound demo without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import faulty
import jax
import pytest

from ecotour.checking import surroundings
from ecotour.checking.proving import prove
from ecotour.checking.table import TABLE, Report, fill
from ecotour.checking.targets import subject_for

fill()


@pytest.fixture(scope="module", autouse=True)
def _compile_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """These demos have nearly all of their programs in common."""
    names = (
        "jax_compilation_cache_dir",
        "jax_persistent_cache_min_compile_time_secs",
        "jax_persistent_cache_min_entry_size_bytes",
        "jax_numpy_dtype_promotion",
    )
    before = {name: getattr(jax.config, name) for name in names}
    values = (str(tmp_path_factory.mktemp("compiled")), 0.0, -1, "standard")
    for name, value in zip(names, values, strict=True):
        jax.config.update(name, value)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


def check(path: Path, fault: str) -> Report:
    path.write_text(faulty.source(fault))
    subject = subject_for(str(path))
    subject.once("before", surroundings.settings)
    return prove(subject)


ELSEWHERE = {"devices"}
"""Needs a process with two devices."""


@pytest.mark.parametrize("fault", [fault for fault in faulty.FAULTS if fault not in ELSEWHERE])
def test_a_fault_is_caught_by_exactly_its_finding(fault: str, tmp_path: Path) -> None:
    report = check(tmp_path / "faulty.py", fault)
    assert report.ids == [fault.partition(",")[0]], [found.line for found in report.found]
    for found in report.found:
        assert "\n" not in found.line
        assert found.line.startswith(found.id + ": ")
        assert TABLE[found.id].mend in found.line


def test_a_sound_demo_has_none_and_the_process_is_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)  # as a demo in a file has it, to import its neighbours
    before = surroundings.settings()
    report = check(tmp_path / "sound.py", "")
    assert report.ids == []
    assert report.unproved == {"devices": "this process has one device"}
    proofs = {name for name, finding in TABLE.items() if finding.proof}
    assert set(report.proved) == proofs - {"devices"}
    assert surroundings.changes(before, surroundings.settings()) == []
