"""Exhibits to pictures: PNG and SVG through matplotlib's objects, pixels and films through Pillow.

Besides: the pictures of a whole run (`pictures`), its page (`report`, composed in `page`), the
ledger in parts (`account`), numbers in words (`wording`), colours and sizes (`look`). From outside
all of these, and the functions below. Stands on the contract and the run's directory.

Pyplot is never imported, no setting of the process is changed, and neither a missing display nor
a nonsense ``MPLBACKEND`` matters. The two libraries are imported when the first picture is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ecotour.contract import exhibits
from ecotour.drawing import look

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from ecotour.contract.exhibits import Curves, Exhibit, Film


def png(exhibit: Exhibit, width: float = look.WIDTH) -> bytes:
    """Draw ``exhibit`` as a PNG; a film as a strip of its frames.

    ``width`` is in inches, for what is drawn with lines. The caption is kept inside as the PNG's
    description, for whoever finds the file alone.
    """
    if isinstance(exhibit, exhibits.Images):
        from ecotour.drawing import pixels

        return pixels.grid_png(exhibit)
    if isinstance(exhibit, exhibits.Film):
        from ecotour.drawing import pixels

        return pixels.strip_png(exhibit)
    from ecotour.drawing import canvas

    with canvas.style():
        return canvas.to_png(_figure(exhibit, width), exhibit.caption)


def svg(exhibit: Exhibit, width: float = look.WIDTH, most: int | None = None) -> str:
    """Draw ``exhibit`` as SVG for the page: its colours are CSS variables, its texts are texts.

    A table, code, images and films have better forms on a page and are refused with a `TypeError`.

    Args:
        exhibit: What to draw.
        width: Inches at which the texts have their proper size.
        most: Characters. Of a drawing that is longer, areas and, if that is not enough, lines
            become transparent pixels, which suit a light and a dark page; axes and texts stay.
    """
    from ecotour.drawing import canvas

    with canvas.style():
        figure = _figure(exhibit, width)
        text = canvas.to_svg(figure, exhibit.caption)
        for kinds in canvas.ROUGHLY_BY_LENGTH:
            if most is None or len(text) <= most:
                break
            canvas.to_pixels(figure, kinds)
            text = min(text, canvas.to_svg(figure, exhibit.caption), key=len)
        return text


def gif(film: Film) -> bytes:
    """Make a film an endless GIF, each pixel of a frame enlarged by a whole number."""
    from ecotour.drawing import pixels

    return pixels.gif(film)


def panels_png(panels: Sequence[Curves], caption: str) -> bytes:
    """Draw several `Curves` side by side as one PNG."""
    from ecotour.drawing import canvas, curves

    with canvas.style():
        return canvas.to_png(curves.panels(panels), caption)


def _figure(exhibit: Exhibit, width: float = look.WIDTH) -> Figure:
    if isinstance(exhibit, exhibits.Curves):
        from ecotour.drawing import curves

        return curves.panels([exhibit], width)
    if isinstance(exhibit, exhibits.Bars):
        from ecotour.drawing import charts

        return charts.bars(exhibit, width)
    if isinstance(exhibit, exhibits.Heatmap):
        from ecotour.drawing import charts

        return charts.heatmap(exhibit)
    if isinstance(exhibit, exhibits.Paths):
        from ecotour.drawing import maps

        return maps.paths(exhibit, width)
    if isinstance(exhibit, exhibits.Graph):
        from ecotour.drawing import maps

        return maps.graph(exhibit, width)
    from ecotour.drawing import text

    if isinstance(exhibit, exhibits.Table):
        return text.table(exhibit)
    if isinstance(exhibit, exhibits.Code):
        return text.code(exhibit)
    raise TypeError(f"{type(exhibit).__name__} is no exhibit")
