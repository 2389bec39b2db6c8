"""The registry, against real distributions on a real path: working ones and hostile ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ecotour.discovery import registry
from ecotour.errors import PluginError, UnknownNameError, UsageError

GOOD = """
import dataclasses, ecotour, jax, jax.numpy as jnp

@dataclasses.dataclass(frozen=True)
class Config:
    width: int = ecotour.flag(3, "how wide", at_least=1)

def init(key, batch):
    return jnp.zeros(())

@jax.jit
def step(state, batch, key):
    return state + 1, {"count": state}

def judge(outcome):
    return ecotour.Verdict((ecotour.Check.equals("last", outcome.states["count"], 3),))

def build(config):
    return ecotour.Program(
        {"count": ecotour.Step(init, step, 3)},
        judge,
    )

@ecotour.hookimpl
def ecotour_demo():
    return ecotour.Demo("Counts", Config, build)
"""


def install(
    site: Path,
    name: str = "counting",
    source: str = GOOD,
    *,
    distribution: str = "",
    requires: str = "ecotour>=0.1",
    version: str = "1.0",
    files: bool = True,
) -> Path:
    """Put a distribution on a path: its module, its metadata, its entry point."""
    distribution = distribution or f"stranger-{name}"
    module = distribution.replace("-", "_")
    site.mkdir(exist_ok=True)
    if files:
        (site / f"{module}.py").write_text(source)
    info = site / f"{module}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        f"Requires-Dist: {requires}\n"
    )
    (info / "entry_points.txt").write_text(f"[ecotour.demos]\n{name} = {module}\n")
    return site


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "site"
    path.mkdir()
    monkeypatch.syspath_prepend(str(path))
    return path


def entry(name: str = "counting") -> registry.Entry:
    (found,) = [e for e in registry.find() if e.name == name]
    return found


def test_a_good_stranger_is_listed_without_being_imported_and_then_loads(site: Path) -> None:
    install(site)
    assert entry().status == "installed"
    assert entry().provenance == "stranger-counting 1.0"
    assert "stranger_counting" not in sys.modules
    assert registry.load(registry.pick("counting")).summary == "Counts"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import there_is_no_such_module", "ModuleNotFoundError: No module named"),
        ("1 / 0", "ZeroDivisionError"),
        ("raise SystemExit(0)", r"sys.exit\(0\)"),
        ("import sys; sys.exit('no')", "sys.exit"),
        ("def broken(:", "SyntaxError"),
        ("x = 1", r"has no hook: define a function ecotour_demo\(\)"),
        ("def ecotour_demo(): pass", "not marked with @ecotour.hookimpl"),
        ("import ecotour\n@ecotour.hookimpl\ndef ecotour_dmeo(): pass", "unknown hook"),
        ("import ecotour\n@ecotour.hookimpl\ndef ecotour_demo(config): pass", "config"),
        ("import ecotour\n@ecotour.hookimpl\ndef ecotour_demo(): return 3", "returned int"),
        ("import ecotour\n@ecotour.hookimpl\ndef ecotour_demo(): return None", "NoneType"),
        (
            "import ecotour\n@ecotour.hookimpl\ndef ecotour_demo(): 1 / 0",
            "hook ecotour_demo failed",
        ),
        ("import ecotour\n@ecotour.hookimpl\ndef ecotour_demo(): raise SystemExit", "failed"),
    ],
)
def test_a_broken_plugin_says_what_is_wrong_in_one_line_and_all_else_works(
    site: Path, source: str, said: str
) -> None:
    number = abs(hash(source))
    install(site, "hostile", source, distribution=f"hostile-{number}")
    install(site)
    with pytest.raises(PluginError, match=said) as caught:
        registry.load(registry.pick("hostile"))
    assert "\n" not in str(caught.value)
    assert f"hostile-{number}" in str(caught.value)
    assert registry.load(registry.pick("counting")).summary == "Counts"


@pytest.mark.parametrize("name", ["con", "Nul", "com1.x"])
def test_a_demo_named_as_a_device_of_windows_is_broken(site: Path, name: str) -> None:
    install(site, name, distribution="devices")
    with pytest.raises(PluginError, match="a device on Windows: rename"):
        registry.pick(name)


def test_two_providers_are_both_named_neither_wins_and_a_flag_chooses(site: Path) -> None:
    install(site, "counting", distribution="one-count")
    install(site, "counting", distribution="another-count")
    with pytest.raises(PluginError, match=r"another-count 1\.0 and one-count 1\.0"):
        registry.pick("counting")
    assert registry.pick("counting", provider="One_Count").distribution == "one-count"
    with pytest.raises(UnknownNameError, match="did you mean one-count"):
        registry.pick("counting", provider="one-cuont")


def test_one_distribution_seen_twice_on_the_path_is_listed_once(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "behind")
    monkeypatch.setattr(sys, "path", [str(site), str(tmp_path / "behind"), *sys.path[1:]])
    install(site, version="2.0")
    assert entry().version == "2.0"


def test_the_order_is_that_of_the_names_not_of_the_path(site: Path, tmp_path: Path) -> None:
    install(site, "zeta")
    install(site, "alpha")
    names = [e.name for e in registry.find()]
    assert names == sorted(names)


def test_disabled_demos_are_shown_as_such_and_not_imported(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, "hostile", "raise RuntimeError('imported')", distribution="hostile-off")
    monkeypatch.setenv("ECOTOUR_DISABLE", "hostile, gan")
    assert {e.name for e in registry.find() if e.status == "disabled"} == {"gan", "hostile"}
    assert {e.name for e in registry.find(["counting"]) if e.status == "disabled"} >= {"gan"}
    with pytest.raises(UsageError, match="ECOTOUR_DISABLE"):
        registry.pick("hostile")


def test_an_incompatible_version_is_known_before_the_import(site: Path) -> None:
    install(site, "future", "raise RuntimeError('imported')", requires="ecotour>=99")
    assert entry("future").status == "incompatible"
    with pytest.raises(PluginError, match=r"needs ecotour >=99, and this is 0\.1\.0"):
        registry.pick("future")


def test_an_entry_point_left_behind_is_named_as_such(site: Path) -> None:
    install(site, "ghost", files=False)
    with pytest.raises(PluginError, match="'stranger_ghost', which is not there"):
        registry.pick("ghost")


@pytest.mark.parametrize(("typed", "meant"), [("gna", "gan"), ("otpax", "optax"), ("rlx", "rlax")])
def test_a_near_miss_gets_the_nearest_name(typed: str, meant: str) -> None:
    with pytest.raises(UnknownNameError, match=f"did you mean {meant}"):
        registry.pick(typed)


def test_a_plain_file_is_a_demo(tmp_path: Path) -> None:
    file = tmp_path / "my_demo.py"
    file.write_text(GOOD)
    found, demo = registry.load_file(file)
    assert (found.name, demo.summary) == ("my_demo", "Counts")
    with pytest.raises(UsageError, match="no such file"):
        registry.load_file(tmp_path / "absent.py")
    file.write_text("import sys; sys.exit(3)")
    with pytest.raises(
        PluginError, match=r"my_demo.py cannot be imported: it called sys.exit\(3\)"
    ):
        registry.load_file(file)


def test_list_and_help_and_version_load_no_jax_and_no_plugin(site: Path) -> None:
    install(site, "hostile", "import os; os._exit(77)", distribution="hostile-exit")
    program = (
        "import sys, contextlib\n"
        "from ecotour.cli import main\n"
        "lines = ('list', 'list --json', '--help', '--version', 'run --help')\n"
        "for argv in map(str.split, lines):\n"
        "    with contextlib.suppress(SystemExit):\n"
        "        main(argv)\n"
        "heavy = {'jax', 'numpy', 'rich', 'matplotlib', 'haiku', 'tensorflow', 'hostile_exit'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(site)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"
    assert "hostile-exit" in done.stdout


def test_the_six_stops_of_the_tour_are_listed(site: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "ECOTOUR_DISABLE"}
    done = subprocess.run(
        [sys.executable, "-m", "ecotour", "list", "--json"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    demos = {demo["name"]: demo["status"] for demo in json.loads(done.stdout)["demos"]}
    assert demos == dict.fromkeys(("chex", "gan", "jax", "jraph", "optax", "rlax"), "installed")
