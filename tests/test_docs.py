"""The site against the code: every command runs, every name is documented, every link resolves."""

from __future__ import annotations

import ast
import base64
import dataclasses
import inspect
import io
import os
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from PIL import Image

import ecotour
from ecotour import errors, events, exhibits, hookspecs
from ecotour.cli.parser import COMMANDS, make_parser
from ecotour.trust import budget, keep, records, sources

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
CORE = ROOT / "ecotour"
PAGES = sorted(p for p in DOCS.rglob("*.md") if not {"_build", "records"} & {*p.parts})
RECORDS = records.find(DOCS / "records")
_FENCE = re.compile(r"^( *)(`{3,})([^\n]*)\n(.*?)^\1\2`*$", re.MULTILINE | re.DOTALL)
_REASON = re.compile(r"<!-- (not run: .{10,}|run in examples) -->\n\Z")


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """Of each fenced block its language, its text, and the mark on the line before it."""
    text = page.read_text()
    found = []
    for match in _FENCE.finditer(text):
        mark = _REASON.search(text[: match.start()])
        found.append((match[3].strip(), match[4], mark[1] if mark else ""))
    return found


COMMAND_BLOCKS = [
    pytest.param(text, mark, id=f"{page.relative_to(ROOT)}:{text.splitlines()[0]}")
    for page in [ROOT / "README.md", *PAGES]
    for language, text, mark in blocks(page)
    if language in ("bash", "sh", "console", "shell") and not mark.startswith("not run")
]


@pytest.mark.parametrize(("text", "mark"), COMMAND_BLOCKS)
def test_commands_run(text: str, mark: str, tmp_path: Path) -> None:
    if mark == "run in examples":
        for file in (DOCS / "examples").glob("*.py"):
            (tmp_path / file.name).write_text(file.read_text())
    shim = tmp_path / "bin" / "ecotour"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ecotour "$@"\n')
    shim.chmod(0o755)
    done = subprocess.run(
        ["bash", "-eu", "-c", text],
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{shim.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout or (tmp_path / "line-run" / "report.html").is_file()


def test_every_command_block_is_known_and_some_run() -> None:
    languages = {language for page in PAGES for language, _, _ in blocks(page)}
    assert not languages & {"", "console", "shell", "zsh", "terminal"}
    assert len(COMMAND_BLOCKS) >= 4


def test_commands_that_are_not_run_are_understood() -> None:
    from ecotour.cli.parser import parse

    seen = 0
    for page in [ROOT / "README.md", *PAGES]:
        for language, text, mark in blocks(page):
            if language in ("bash", "sh") and mark.startswith("not run"):
                for line in re.findall(r"\becotour (\w.*)$", text, re.MULTILINE):
                    parse(shlex.split(line, comments=True))
                    seen += 1
    assert seen >= 5


@pytest.mark.parametrize("file", sorted((DOCS / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_say_what_they_print(file: Path) -> None:
    text = file.read_text()
    wanted = re.findall(r"^print\(.*\)  # (.+)$", text, re.MULTILINE)
    if not wanted:
        assert "ecotour_demo" in text  # a demo; a command block runs it
        return
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [" ".join(line.split()) for line in done.stdout.splitlines()] == wanted


class _Page(HTMLParser):
    """The anchors, links and words of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.words: list[str] = []
        self.feed(path.read_text())
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if found.get("id"):
            self.ids.add(str(found["id"]))
        for name in ("href", "src"):
            if found.get(name):
                self.links.append(str(found[name]))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[str, _Page]:
    """The whole site, built once, warnings as errors; pages by their address."""
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-j", "2"]
    done = subprocess.run(
        [*command, "-d", str(out / "doctrees"), str(DOCS), str(out / "html")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    html = out / "html"
    return {
        path.relative_to(html).as_posix(): _Page(path)
        for path in sorted(html.rglob("*.html"))
        if "_static" not in path.parts
    } | {"": html}  # type: ignore[dict-item]


def test_links_resolve(site: dict[str, _Page]) -> None:
    html: Path = site[""]  # type: ignore[assignment]
    broken = []
    for address, page in site.items():
        if not address:
            continue
        for link in page.links:
            target, anchor = urldefrag(link)
            if re.match(r"[a-z]+:", target):
                assert target.startswith(("https://", "data:")), link
                continue
            path = address if not target else os.path.normpath(
                Path(address).parent / unquote(target.split("?")[0])
            )  # fmt: skip
            if not (html / path).is_file():
                broken.append(f"{address}: {link}")
            elif anchor and path in site and unquote(anchor) not in site[path].ids:
                broken.append(f"{address}: {link} has no such anchor")
    assert not broken


def test_pages_need_no_network(site: dict[str, _Page]) -> None:
    html: Path = site[""]  # type: ignore[assignment]
    for path in html.rglob("*.html"):
        loaded = re.findall(r"<(?:script|img|link|iframe)\b[^>]*(?:src|href)=\"([^\"]+)\"",
                            path.read_text())  # fmt: skip
        assert not [address for address in loaded if re.match(r"(https?:)?//", address)], path


def test_every_command_and_flag_is_documented(site: dict[str, _Page]) -> None:
    text = site["reference/commands.html"].text
    _, commands = make_parser()
    for name in COMMANDS:
        assert f"ecotour {name}" in text
        for action in commands.choices[name]._actions:
            for option in action.option_strings:
                assert option in text or option in ("-h", "--help"), f"{name} {option}"


def test_every_hook_event_exhibit_error_and_public_name_is_documented(
    site: dict[str, _Page],
) -> None:
    everywhere = " ".join(page.text for address, page in site.items() if address)
    ids = {name for address, page in site.items() if address for name in page.ids}
    for module in (events, exhibits, errors):
        for name, value in vars(module).items():
            home = module.__name__.replace("ecotour.", "ecotour.contract.")
            if inspect.isclass(value) and value.__module__ in (module.__name__, home):
                assert f"{module.__name__}.{name}" in ids, name
                assert value.__doc__, name
    for name in vars(hookspecs):
        if name.startswith("ecotour_"):
            assert f"ecotour.hookspecs.{name}" in ids, name
    for name in ecotour.__all__:
        if not name.startswith("__"):
            assert re.search(rf"\b{name}\b", everywhere), name
    for name in ("Demo", "Program", "Step", "Verdict", "Check", "Outcome"):
        assert f"ecotour.demo.{name}" in ids
        for field in dataclasses.fields(getattr(ecotour, name)):
            assert field.name in site["reference/contract.html"].text, f"{name}.{field.name}"


def test_every_key_of_the_record_is_documented(tmp_path: Path) -> None:
    import json

    from lines import make_run

    record = json.loads((make_run(tmp_path / "run", "--steps", "3") / "run.json").read_text())
    page = (DOCS / "reference" / "record.md").read_text()
    named = set(re.findall(r"`([a-z0-9_]+)`", page))
    assert set(record) <= named
    assert set(record["ledger"]) <= named | {"compile_s", "loop_s"}
    assert set(record["ledger"]["steps"]["fit"]) <= named


def test_every_finding_of_check_is_documented(site: dict[str, _Page]) -> None:
    from ecotour.checking.table import TABLE, fill

    fill()
    assert TABLE
    for finding in TABLE:
        assert finding in site["findings.html"].ids, finding


def layers() -> list[list[tuple[str, list[str]]]]:
    """The diagram of the architecture, as its page has it."""
    sys.path.insert(0, str(DOCS / "_ext"))
    try:
        from house import read_layers
    finally:
        sys.path.remove(str(DOCS / "_ext"))
    drawn = [text for language, text, _ in blocks(DOCS / "architecture.md")
             if language == "{house-layers}"]  # fmt: skip
    found: list[list[tuple[str, list[str]]]] = read_layers(drawn[0].splitlines())
    return found


def imported(path: Path) -> set[str]:
    """The parts of the core that a file imports: at its top, late, or for types alone."""
    found = set()
    todo: list[ast.AST] = [ast.parse(path.read_text())]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.ImportFrom) and node.module == "ecotour":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("ecotour."):
            found.add(str(node.module).split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("ecotour.")}
        todo.extend(ast.iter_child_nodes(node))
    return found


def test_the_diagram_is_what_the_imports_are() -> None:
    place = {
        module: (row, column)
        for row, boxes in enumerate(layers())
        for column, (_, modules) in enumerate(boxes)
        for module in modules
    }
    parts = {path.relative_to(CORE).parts[0].removesuffix(".py") for path in CORE.rglob("*.py")}
    parts -= {"__init__"}
    assert set(place) == parts, "docs/architecture.md names what is there, no more and no less"
    wrong = []
    for path in sorted(CORE.rglob("*.py")):
        part = path.relative_to(CORE).parts[0].removesuffix(".py")
        if part == "__init__":
            continue
        for other in imported(path) & parts - {part}:
            same_box = place[other] == place[part]
            if not same_box and place[other][0] <= place[part][0]:
                wrong.append(f"{path.relative_to(ROOT)} imports {other}")
    assert not wrong


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name)
def test_records_are_small_whole_and_without_a_trace_of_a_machine(path: Path) -> None:
    record = records.read(path)
    assert sorted(path.iterdir()) == sorted(record.files)
    assert sum(file.stat().st_size for file in record.files) <= 2 * budget.BUDGET
    for file in record.files:
        if file.suffix in (".json", ".jsonl", ".svg"):
            text = file.read_text()
            clean = keep.scrub_svg if file.suffix == ".svg" else keep.scrub
            assert clean(text) == text
            for pixels in re.findall(r'"data:image/png;base64,([^"]*)"', text):
                Image.open(io.BytesIO(base64.b64decode(pixels))).verify()
            assert not re.search(r"/(home|Users|root|tmp|work)/", text), file


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name)
def test_records_are_of_the_source_that_is_here(path: Path) -> None:
    document = records.read(path).document
    module = document["module"]
    now = sources.fingerprints(sources.module_file(module), module)
    changed = [n for n in {*now, *document["sources"]} if now.get(n) != document["sources"].get(n)]
    mend = f"run `ecotour record {path.name}`"
    assert not changed, f"{changed} changed since {path.name} was recorded: {mend}"


def test_every_stop_has_a_page_and_a_record() -> None:
    projects = (ROOT / "plugins").glob("*/pyproject.toml")
    stops = {file.parent.name for file in projects if "ecotour.demos" in file.read_text()}
    assert stops == {page.stem for page in (DOCS / "tour").glob("*.md")} - {"index"}
    assert stops == {path.name for path in RECORDS}
