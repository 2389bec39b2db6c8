"""What becomes of the events of a run: shown, written down, drawn. A sink knows no runner.

From outside: `Sink`, and one module for each sink: `recorder`, `pictures`, `checkpoints`,
`report`, and `terminal` (with its parts `live`, `plain`, `summary`, `glyphs` and `stream`);
`extension` finds those of other distributions. Stands on discovery, the run's directory and the
drawings.
"""

from ecotour.contract.events import Sink

__all__ = ["Sink"]
