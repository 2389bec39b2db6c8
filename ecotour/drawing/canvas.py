"""Matplotlib without its surroundings: import, style, axes and the two file formats."""

from __future__ import annotations

import io
import logging
import math
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ecotour.drawing import look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_NOT_STYLE = ("backend", "interactive", "toolbar", "timezone", "datapath", "webagg.", "tk.")


def load() -> Any:
    """Import matplotlib, whatever ``MPLBACKEND`` says: a backend of nonsense stops the import."""
    backend = os.environ.pop("MPLBACKEND", None)
    log = logging.getLogger("matplotlib")
    level = log.level
    log.setLevel(logging.ERROR)  # it would complain of a read-only home on standard error
    try:
        import matplotlib
        import matplotlib.backends.backend_agg
        import matplotlib.backends.backend_svg
        import matplotlib.figure
        import matplotlib.font_manager
    finally:
        log.setLevel(level)
        if backend is not None:
            os.environ["MPLBACKEND"] = backend
    return matplotlib


@contextmanager
def style() -> Iterator[None]:
    """Matplotlib's defaults and our look inside, the user's settings again outside."""
    matplotlib = load()
    # a user's matplotlibrc must not restyle our pictures, but the backend stays theirs
    ours = {k: v for k, v in matplotlib.rcParamsDefault.items() if not k.startswith(_NOT_STYLE)}
    ours |= {
        "axes.axisbelow": True,
        "axes.edgecolor": look.MUTED,
        "axes.facecolor": look.PAPER,
        "axes.grid": False,
        "axes.labelcolor": look.MUTED,
        "axes.labelsize": look.SMALL_SIZE,
        "axes.linewidth": 0.8,
        "axes.prop_cycle": matplotlib.rcsetup.cycler(color=list(look.SERIES)),
        "axes.spines.left": False,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlecolor": look.INK,
        "axes.titlelocation": "left",
        "axes.titlesize": look.TITLE_SIZE,
        "axes.titleweight": "bold",
        "axes.unicode_minus": True,
        "figure.dpi": look.DPI,
        "figure.edgecolor": look.PAPER,
        "figure.facecolor": look.PAPER,
        "font.family": ["DejaVu Sans"],
        "font.size": look.TEXT_SIZE,
        "grid.color": look.HAIRLINE,
        "grid.linewidth": 0.7,
        "legend.frameon": False,
        "legend.fontsize": look.SMALL_SIZE,
        "lines.linewidth": 1.6,
        "lines.solid_capstyle": "round",
        "lines.solid_joinstyle": "round",
        "path.simplify": True,
        "path.simplify_threshold": 0.3,
        "savefig.bbox": None,
        "svg.fonttype": "none",
        "svg.hashsalt": "ecotour",
        "text.color": look.INK,
        "text.parse_math": False,  # a dollar sign in a name is a dollar sign
        "text.usetex": False,
        "xtick.minor.size": 0,
        "ytick.minor.size": 0,
        "xtick.color": look.MUTED,
        "xtick.labelsize": look.SMALL_SIZE,
        "xtick.major.size": 3,
        "ytick.color": look.MUTED,
        "ytick.labelsize": look.SMALL_SIZE,
        "ytick.major.size": 0,
    }
    with matplotlib.rc_context(ours), warnings.catch_warnings():
        # a name in a script that the font lacks, an axis without length, a number near the end
        # of its range: the picture is then odd, and that is all
        warnings.filterwarnings("ignore", category=UserWarning)
        warnings.filterwarnings("ignore", category=RuntimeWarning)
        yield


def new_figure(width: float = look.WIDTH, height: float = 3.4, *, arranged: bool = True) -> Figure:
    """An empty figure of so many inches; ``arranged`` makes room for labels by itself."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained" if arranged else None)
    FigureCanvasAgg(figure)
    return figure


def to_png(figure: Any, caption: str) -> bytes:
    """The figure as a PNG with at most 256 colours, which is what keeps it small."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    raw = io.BytesIO()
    figure.savefig(raw, format="png", dpi=look.DPI)
    info = PngInfo()
    info.add_itxt("Description", caption)
    info.add_text("Software", "ecotour")
    out = io.BytesIO()
    with Image.open(raw) as image:
        small = image.convert("RGB").quantize(256, method=Image.Quantize.FASTOCTREE, dither=0)
    small.save(out, format="PNG", optimize=True, pnginfo=info)
    return out.getvalue()


_BEFORE_SVG = re.compile(r"^.*?(?=<svg )", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>|<style [^>]*>.*?</style>", re.DOTALL)
_NUMBERED_ID = re.compile(r' id="[A-Za-z0-9]*_[0-9]+"')
_DECIMALS = re.compile(r"(?<=[0-9])(\.[0-9]{2})[0-9]+(?=[ \n\",)])")
_SIZE = re.compile(r'<svg ([^>]*?)width="[^"]*pt" height="[^"]*pt"')
_FONT = re.compile(r"'DejaVu Sans Mono'|'DejaVu Sans'|DejaVu Sans Mono|DejaVu Sans")
_PIXELS = re.compile(r'(?<="data:image/png;base64,)([A-Za-z0-9+/=\s]{16000,})(?=")')
"""Those that are worth making smaller."""


def to_svg(figure: Any, title: str) -> str:
    """The figure as an ``<svg>`` element to stand inside a page, in the page's colours."""
    import html

    raw = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(raw, format="svg", transparent=True, metadata=nothing)
    text = _BEFORE_SVG.sub("", raw.getvalue(), count=1)
    text = _NUMBERED_ID.sub("", _METADATA.sub("", text))
    label = html.escape(title, quote=True)
    most = round(72 * 1.5 * figure.get_figwidth())  # an eighth above the size it is drawn for
    head = f'role="img" style="max-width: {most}px" aria-label='
    text = _SIZE.sub(lambda found: f'<svg {found[1]}{head}"{label}"', text, count=1)
    text = _DECIMALS.sub(r"\1", text)
    text = _PIXELS.sub(lambda found: _fewer_colours(found[1]), text)
    for name, colour in look.LIGHT.items():
        text = re.sub(rf"(: ?){colour}\b", rf"\1var(--{name})", text)
    return _FONT.sub("inherit", text)


def _fewer_colours(encoded: str) -> str:
    """A PNG in base64 with at most 256 colours, transparent ones among them."""
    import base64

    from PIL import Image

    out = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(encoded))) as image:
        small = image.convert("RGBA").quantize(256, method=Image.Quantize.FASTOCTREE, dither=0)
    small.save(out, format="PNG", optimize=True)
    return base64.b64encode(out.getvalue()).decode("ascii")


ROUGHLY_BY_LENGTH = (("collections",), ("collections", "lines", "patches"))
"""What of a pair of axes is long as SVG: contours and clouds of points first of all."""


def to_pixels(figure: Figure, kinds: Sequence[str]) -> None:
    """Let a figure's SVG have these kinds of artists as embedded pixels."""
    for axes in figure.axes:
        for kind in kinds:
            for artist in getattr(axes, kind):
                artist.set_rasterized(True)


def plot_axes(axes: Axes, *, grid: str = "y") -> None:
    """Dress a pair of axes: a base line, hairlines to read heights from, no box."""
    axes.grid(True, axis=grid)  # type: ignore[arg-type]
    axes.tick_params(axis="x", length=3)
    axes.margins(x=0.01)


def tick(value: float, _: Any = None) -> str:
    """A tick's label: thousands apart, no needless zeros, powers of ten in superscript."""
    magnitude = abs(value)
    if not math.isfinite(value):
        return ""
    if magnitude and (magnitude >= 1e6 or magnitude < 1e-3):
        mantissa, exponent = f"{value:.2e}".split("e")
        mantissa = mantissa.rstrip("0").rstrip(".")
        power = "10" + str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return {"1": power, "-1": f"−{power}"}.get(mantissa, f"{mantissa}·{power}")
    return f"{value:,.10g}".replace("-", "−")


def log_axis(axis: Any) -> None:
    """Label the decades of a logarithmic axis, and 2 and 5 between them where there are few."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    few = low > 0 and high / low < 300
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,), numticks=9))
    axis.set_major_formatter(FuncFormatter(tick))
    axis.set_minor_formatter(NullFormatter())


def shorten(text: str, most: int) -> str:
    """One line of at most ``most`` characters, its end cut with an ellipsis."""
    line = " ".join(str(text).split())
    return line if len(line) <= most else line[: max(1, most - 1)] + "…"
