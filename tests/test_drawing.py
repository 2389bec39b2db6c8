"""Pictures of every kind of exhibit: real pixels, a look that all can see, no global state."""

from __future__ import annotations

import base64
import io
import itertools
import math
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
import synthetic
from PIL import Image
from test_exhibit_json import every_kind

from ecotour import drawing
from ecotour import exhibits as ex
from ecotour.contract.events import NOT_METRICS
from ecotour.drawing import curves, look, pixels
from ecotour.drawing.metric_curves import from_history, thinned
from ecotour.running.history import History

DRAWN = ("curves", "bars", "heatmap", "cells", "paths", "graph", "lonely")


@pytest.mark.parametrize("name", every_kind())
def test_every_kind_becomes_a_small_png(name: str) -> None:
    exhibit = every_kind()[name]
    content = drawing.png(exhibit)
    with Image.open(io.BytesIO(content)) as picture:
        picture.load()
        assert picture.format == "PNG"
        assert picture.info["Description"] == exhibit.caption
        assert len(np.unique(np.asarray(picture.convert("L")))) > 1, "nothing is drawn"
    assert len(content) < 150_000


@pytest.mark.parametrize("name", DRAWN)
def test_svg_stands_in_a_page_and_takes_its_colours(name: str) -> None:
    text = drawing.svg(every_kind()[name])
    root = ET.fromstring(text)
    assert root.tag.endswith("svg")
    assert root.attrib["aria-label"] == every_kind()[name].caption
    assert "var(--" in text
    assert look.INK not in text
    assert "DejaVu" not in text


def contours() -> ex.Paths:
    """Rosenbrock's valley on a fine grid: some hundred thousand characters of SVG."""
    x, y = np.linspace(-2, 2, 300), np.linspace(-1, 3, 300)
    heights = (1 - x[None]) ** 2 + 100 * (y[:, None] - x[None] ** 2) ** 2
    return ex.Paths(x, y, heights, {"straight": [[-1, 1], [1, 1]]}, "A valley.")


def test_of_a_long_svg_what_is_long_becomes_transparent_pixels() -> None:
    whole = drawing.svg(contours())
    assert "<image" not in whole
    short = drawing.svg(contours(), most=len(whole) - 1)
    assert len(short) < len(whole) / 3
    assert "straight" in short
    assert "var(--series-0)" in short, "the path is still a line in the page's colours"
    (encoded,) = re.findall(r'"data:image/png;base64,([^"]+)"', short)
    with Image.open(io.BytesIO(base64.b64decode(encoded))) as picture:
        opacity = np.asarray(picture.convert("RGBA"))[..., 3]
    assert opacity.max() < 200, "the page's paper shines through, be it light or dark"
    ET.fromstring(short)


def test_a_long_legend_makes_the_drawing_higher_and_a_long_title_is_cut() -> None:
    def height(count: int, title: str = "loss") -> float:
        lines = {f"a rather long name {n}": ex.Line([1, 2], [1.0, 2.0]) for n in range(count)}
        text = drawing.svg(ex.Curves(lines, "", y_label=title), 4.8)
        assert ("x" * 60 in text) is False
        return float(ET.fromstring(text).attrib["viewBox"].split()[3])

    assert height(2) == height(2, "x" * 90)
    assert height(16) - height(2) == pytest.approx((16 / 2 - 2) * curves.ROW, abs=2 * curves.ROW)


def test_the_pixels_of_a_grid_are_the_images_own() -> None:
    digits = synthetic.digits(6)
    with Image.open(io.BytesIO(drawing.png(ex.Images(digits, "", columns=3)))) as picture:
        board = np.asarray(picture)
    scale, gap = 10, 6
    assert board.shape == (2 * 28 * scale + gap, 3 * 28 * scale + 2 * gap)
    for number, digit in enumerate(digits):
        row, column = divmod(number, 3)
        top, left = row * (28 * scale + gap), column * (28 * scale + gap)
        cut = board[top : top + 28 * scale, left : left + 28 * scale]
        np.testing.assert_array_equal(cut, np.kron(digit, np.ones((scale, scale), np.uint8)))


def test_a_film_plays_every_frame_and_lies_still_as_a_strip() -> None:
    frames = synthetic.digits(25)
    film = ex.Film(frames, "25 digits", frames_per_second=5)
    with Image.open(io.BytesIO(drawing.gif(film))) as picture:
        assert picture.n_frames == 25
        assert picture.info["duration"] == 200
        assert picture.info["loop"] == 0
        first = np.asarray(picture.convert("L"))
    scale = first.shape[0] // 28
    np.testing.assert_array_equal(first[::scale, ::scale], frames[0])
    strip = pixels.strip(film)
    assert len(strip.pixels) == 10
    np.testing.assert_array_equal(strip.pixels[0], frames[0])
    np.testing.assert_array_equal(strip.pixels[-1], frames[-1])


def test_odd_names_are_drawn_as_they_are() -> None:
    names = ["_private", "$x^2$", "<b>&amp;", "损失", "a\nb", "x" * 300, ""]
    lines = {name: ex.Line([1, 2], [1.0, 2.0]) for name in names}
    odd = ex.Curves(lines, "$\\frac", x_label="$", y_label="$_$", guides={"$g$": 1.5})
    root = ET.fromstring(drawing.svg(odd))
    texts = {"".join(node.itertext()).strip() for node in root.iter() if node.tag.endswith("text")}
    assert {"_private", "$x^2$", "<b>&amp;", "损失", "a b", "$g$"} <= texts
    assert drawing.png(odd)
    assert drawing.png(ex.Bars(names, range(7), "", y_label="$"))
    assert drawing.png(ex.Table(names, [names], "$"))
    assert drawing.png(ex.Code("\x1b[31m$ red\x00", "$"))


@pytest.mark.parametrize(
    "exhibit",
    [
        ex.Curves({}, "no line"),
        ex.Curves({"a": ex.Line([], [])}, "no point"),
        ex.Curves({"a": ex.Line([1], [1.0])}, "one point", log_x=True, log_y=True),
        ex.Curves({"a": ex.Line([0, 1], [-1.0, 0.0])}, "no logarithm", log_y=True),
        ex.Curves({"a": ex.Line(range(9), [math.nan] * 9)}, "gaps only"),
        ex.Curves({"a": ex.Line(range(3), [1e-300, 1e300, 1.0])}, "huge", log_y=True),
        ex.Bars([], [], "no bar"),
        ex.Bars(["a"], [math.nan], "no height"),
        ex.Table([], [], "no column"),
        ex.Table(["a"], [], "no row"),
        ex.Table(["a"], [[n] for n in range(500)], "500 rows"),
        ex.Heatmap(np.full((2, 2), np.nan), "no value", annotate=True),
        ex.Heatmap(np.ones((1, 1)), "one cell"),
        ex.Heatmap(np.zeros((300, 200)), "many cells", annotate=True),
        ex.Paths([0, 1], [0, 1], np.ones((2, 2)), {"still": [[0, 0]]}, "flat land"),
        ex.Paths([0], [0], np.ones((1, 1)), {}, "a point"),
        ex.Paths([0, 1], [0, 1], np.eye(2), {"lost": [[math.nan, math.inf]]}, "lost"),
        ex.Graph(np.zeros((0, 2)), [], "no node"),
        ex.Graph(np.zeros((3, 2)), [[0, 0]], "all in one place", values=[math.nan, 0, 1]),
        ex.Code("", "no text"),
        ex.Code("long " * 500 + "\nline" * 500, "too long"),
        ex.Images(np.zeros((1, 1, 1), np.uint8), "one pixel"),
        ex.Images(np.zeros((1000, 32, 32, 3), np.uint8), "a thousand"),
        ex.Images(np.zeros((2, 3000, 10), np.uint8), "tall", labels=["long label", ""]),
        ex.Film(np.zeros((1, 8, 8), np.uint8), "one frame", frames_per_second=1000),
    ],
    ids=lambda exhibit: f"{type(exhibit).__name__}: {exhibit.caption}",
)
def test_the_empty_the_endless_and_the_odd_are_drawn(exhibit: ex.Exhibit) -> None:
    with Image.open(io.BytesIO(drawing.png(exhibit))) as picture:
        assert 0 < picture.width <= 4200
        assert 0 < picture.height <= 4200


def test_thinning_keeps_every_spike_and_every_gap() -> None:
    x = np.arange(100_000.0)
    y = np.sin(x / 5000)
    y[12_345], y[77_777], y[50_000:50_003] = 9.0, -9.0, np.nan
    kept_x, kept_y = thinned(x, y, 1000)
    assert len(kept_x) < 2100
    assert np.nanmax(kept_y) == 9.0
    assert np.nanmin(kept_y) == -9.0
    assert np.isnan(kept_y[(kept_x >= 50_000) & (kept_x < 50_003)]).any()
    assert (np.diff(kept_x) > 0).all()
    assert kept_x[0] == 0
    assert kept_x[-1] == 99_999


def test_the_running_mean_leaves_a_line_alone_and_keeps_gaps() -> None:
    line = np.arange(200.0)
    smooth = curves.running_mean(line)
    np.testing.assert_allclose(smooth[10:-10], line[10:-10], rtol=1e-12)
    line[50] = np.nan
    assert np.flatnonzero(np.isnan(curves.running_mean(line))).tolist() == [50]


def test_metrics_of_one_name_are_compared_across_steps() -> None:
    rows = [
        {"step": step, "of": of, "loss": float(step), "only_sgd" if of == "sgd" else "norm": None,
         "elapsed_s": 0.1}
        for of in ("sgd", "adam") for step in (1, 2, 3)
    ]  # fmt: skip
    guides = {"sgd": {"loss": [0.5, "floor"]}, "adam": {"loss": [0.5, "floor"]}}
    history = {of: History() for of in ("sgd", "adam")}
    for of, one in history.items():
        one.extend([row for row in rows if row["of"] == of], NOT_METRICS)
    sgd, adam, across = from_history(history, guides)
    assert [panels.of for panels in (sgd, adam, across)] == ["sgd", "adam", None]
    assert [one.y_label for one in sgd.curves] == ["loss", "only_sgd"]
    assert sgd.curves[0].guides == {"floor": 0.5}
    assert [list(one.lines) for one in across.curves] == [["sgd", "adam"]]
    assert np.isnan(sgd.curves[1].lines["only_sgd"].y).all()
    assert from_history({}, {}) == []


def test_the_palette_is_told_apart_by_every_eye() -> None:
    """Brettel, Viénot and Mollon's loss of one cone, in the linear form of Machado et al. 2009."""
    blind = {
        "all cones": np.eye(3),
        "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                       [-0.003882, -0.048116, 1.051998]],
        "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                         [-0.011820, 0.042940, 0.968881]],
        "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                       [0.004733, 0.691367, 0.303900]],
    }  # fmt: skip
    for palette in (look.SERIES, [look.DARK[f"series-{n}"] for n in range(8)]):
        linear = np.array([_linear(colour) for colour in palette])
        for eye, matrix in blind.items():
            seen = [_lab(np.clip(np.asarray(matrix) @ colour, 0, 1)) for colour in linear]
            for one, other in itertools.combinations(range(6), 2):
                distance = np.linalg.norm(seen[one] - seen[other])
                assert distance > 11, f"{palette[one]} and {palette[other]} with {eye}: {distance}"


@pytest.mark.parametrize("theme", [look.LIGHT, look.DARK], ids=["light", "dark"])
def test_text_and_lines_have_contrast_against_the_paper(theme: dict[str, str]) -> None:
    """WCAG 2.2: 4.5 for text, 3 for graphical objects (1.4.3 and 1.4.11); sky is for fills."""
    for name in ("ink", "muted", "good", "bad"):
        assert _contrast(theme[name], theme["paper"]) >= 4.5, name
        assert _contrast(theme[name], theme["wash"]) >= 4.5, name
    for number in (0, 1, 2, 3, 6, 7):
        assert _contrast(theme[f"series-{number}"], theme["paper"]) >= 3, number


@pytest.mark.parametrize(
    "environment",
    [{"MPLBACKEND": "nonsense"}, {"MPLBACKEND": "TkAgg", "DISPLAY": ":99"}, {"HOME": "/nowhere"}],
    ids=lambda environment: next(iter(environment)) + "=" + next(iter(environment.values())),
)
def test_displays_backends_and_homes_do_not_matter(
    environment: dict[str, str], tmp_path: Path
) -> None:
    script = (
        "import os, sys; from ecotour import drawing, exhibits as ex\n"
        "before = dict(os.environ)\n"
        "sys.stdout.buffer.write(drawing.png(ex.Bars(['a'], [1], 'one bar')))\n"
        "import matplotlib\n"
        "assert dict(os.environ) == before\n"
        "assert matplotlib.rcParams['text.parse_math'] is True, 'a setting was left behind'\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "assert 'jax' not in sys.modules\n"
    )
    clean = {key: os.environ[key] for key in ("PATH", "PYTHONPATH") if key in os.environ}
    clean |= {"HOME": str(tmp_path), **environment}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], env=clean, capture_output=True, check=False
    )
    assert done.stderr.decode() == ""
    with Image.open(io.BytesIO(done.stdout)) as picture:
        assert picture.size == (960, picture.height)


def _linear(colour: str) -> np.ndarray:
    srgb = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def _lab(linear: np.ndarray) -> np.ndarray:
    to_xyz = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
                       [0.0193339, 0.1191920, 0.9503041]])  # fmt: skip
    xyz = to_xyz @ linear / np.array([0.95047, 1.0, 1.08883])
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def _contrast(one: str, other: str) -> float:
    weights = np.array([0.2126, 0.7152, 0.0722])
    light, dark = sorted((weights @ _linear(one), weights @ _linear(other)), reverse=True)
    return float((light + 0.05) / (dark + 0.05))
