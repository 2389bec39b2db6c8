"""Names that a folder cannot have everywhere."""

from __future__ import annotations

import re

_DEVICE = re.compile(r"con|prn|aux|nul|conin\$|conout\$|clock\$|(com|lpt)[0-9¹²³]", re.IGNORECASE)


def is_device(name: str) -> bool:
    """Whether ``name`` is one that Windows has for a device, in every folder and any suffix."""
    return bool(_DEVICE.fullmatch(name.partition(".")[0].rstrip()))
