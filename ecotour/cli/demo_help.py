"""The help of ``run`` and ``show`` for one demo, with the demo's own flags."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ecotour.cli.parser import make_parser
from ecotour.contract import flags

if TYPE_CHECKING:
    from ecotour.contract.demo import Demo


def help_text(name: str, demo: Demo) -> str:
    """The help of ``run`` for one demo: every run's flags, then the demo's own."""
    _, commands = make_parser(sinks=True)
    lines = [commands.choices["run"].format_help().rstrip(), "", f"flags of {name}:"]
    for flag in flags.describe(demo.config):
        facts = ", ".join([f"default: {flag.default_as_typed}", *flag.bounds_in_words])
        lines.append(f"  {flag.usage}")
        lines.append(f"                        {flag.help} ({facts})")
    return "\n".join(lines)
