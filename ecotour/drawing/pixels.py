"""Pixels as pixels: grids, strips and films, each pixel enlarged by a whole number."""

from __future__ import annotations

import functools
import io
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ecotour.contract.exhibits import Film, Images
from ecotour.drawing import look
from ecotour.rundir.values_json import pixels as to_uint8

if TYPE_CHECKING:
    from PIL.Image import Image

TARGET_WIDTH = 900
MOST_FRAMES_IN_A_STRIP = 10
MOST_FRAMES_IN_A_GIF = 300
PAPER = 255


def grid(images: Images, target: int = TARGET_WIDTH) -> Image:
    """The grid as a picture about ``target`` pixels wide (or smaller: never blurred)."""
    from PIL import Image, ImageDraw

    stack = _stack(images.pixels)
    count, height, width = stack.shape[:3]
    columns = min(count, images.columns or math.ceil(math.sqrt(count)))
    rows = math.ceil(count / columns)
    scale = max(1, min(12, target // (columns * (width + 1))))
    if columns * (width + 1) * scale > 4096 or rows * (height + 1) * scale > 4096:
        scale = max(1, min(4096 // (columns * (width + 1)), 4096 // (rows * (height + 1))))
    gap = max(1, min(6, scale))
    font_size = int(np.clip(width * scale * 0.15, 9, 20))
    under = font_size + 6 if images.labels is not None else 0
    across, down = width * scale + gap, height * scale + gap + under
    board = np.full((rows * down - gap, columns * across - gap, *stack.shape[3:]), PAPER, np.uint8)
    for position, picture in enumerate(stack):
        row, column = divmod(position, columns)
        large = picture.repeat(scale, axis=0).repeat(scale, axis=1)
        top, left = row * down, column * across
        board[top : top + height * scale, left : left + width * scale] = large
    drawn = Image.fromarray(board)
    if images.labels is not None:
        pen, font = ImageDraw.Draw(drawn), _font(font_size)
        for position, label in enumerate(images.labels):
            row, column = divmod(position, columns)
            where = (column * across + width * scale / 2, row * down + height * scale + 2)
            text = _fitting(pen, str(label), font, width * scale)
            ink: Any = look.INK if drawn.mode == "RGB" else 32
            pen.text(where, text, fill=ink, font=font, anchor="ma")
    return drawn


def grid_png(images: Images, target: int = TARGET_WIDTH) -> bytes:
    """The grid as a PNG."""
    return _png(grid(images, target), images.caption)


def strip(film: Film) -> Images:
    """About ten frames of a film, evenly spaced with the first and the last, side by side."""
    frames = _stack(film.frames)
    chosen = np.unique(np.linspace(0, len(frames) - 1, MOST_FRAMES_IN_A_STRIP).round().astype(int))
    labels = [f"{frame / film.frames_per_second:.3g} s" for frame in chosen]
    columns = len(chosen) if len(chosen) <= 5 else math.ceil(len(chosen) / 2)
    return Images(frames[chosen], film.caption, columns=columns, labels=labels)


def strip_png(film: Film) -> bytes:
    """The strip as a PNG."""
    return _png(grid(strip(film)), film.caption)


def gif(film: Film) -> bytes:
    """The film as an endless GIF of at most `MOST_FRAMES_IN_A_GIF` frames, the last one held."""
    from PIL import Image

    frames = _stack(film.frames)
    total = len(frames)
    chosen = np.unique(np.linspace(0, total - 1, min(total, MOST_FRAMES_IN_A_GIF)).astype(int))
    frames = frames[chosen]
    scale = max(1, min(12, 320 // max(frames.shape[1:3])))
    large = [Image.fromarray(frame.repeat(scale, 0).repeat(scale, 1)) for frame in frames]
    # browsers slow a delay below 20 ms down to 100, and GIF counts in hundredths of a second
    delay = max(20, round(1000 / film.frames_per_second * total / len(frames) / 10) * 10)
    if large[0].mode == "RGB":
        palette = large[len(large) // 2].quantize(255, dither=Image.Dither.NONE)
        large = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in large]
    out = io.BytesIO()
    large[0].save(
        out,
        format="GIF",
        save_all=True,
        append_images=large[1:],
        loop=0,
        optimize=True,
        duration=[delay] * (len(large) - 1) + [max(delay, 1500)],
        comment=film.caption.encode("ascii", "replace")[:250],
    )
    return out.getvalue()


def _stack(values: Any) -> np.ndarray:
    stack = to_uint8(values)
    return stack[..., 0] if stack.ndim == 4 and stack.shape[3] == 1 else stack


def _png(picture: Image, caption: str) -> bytes:
    from PIL.PngImagePlugin import PngInfo

    info = PngInfo()
    info.add_itxt("Description", caption)
    info.add_text("Software", "ecotour")
    out = io.BytesIO()
    picture.save(out, format="PNG", optimize=True, pnginfo=info)
    return out.getvalue()


@functools.cache
def _font(size: int) -> Any:
    from PIL import ImageFont

    from ecotour.drawing import canvas

    path = f"{canvas.load().get_data_path()}/fonts/ttf/DejaVuSans.ttf"
    return ImageFont.truetype(path, size)


def _fitting(pen: Any, text: str, font: Any, room: float) -> str:
    line = " ".join(text.split())
    if pen.textlength(line, font=font) <= room + 2:
        return line
    while len(line) > 1 and pen.textlength(line + "…", font=font) > room + 2:
        line = line[:-1]
    return line + "…"
