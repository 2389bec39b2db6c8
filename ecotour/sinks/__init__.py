"""What becomes of the events of a run: shown, written down, drawn. A sink knows no runner.

From outside: `Sink`, and one module for each sink (`recorder`, `pictures`, `checkpoints`, `report`,
`terminal`); `extension` finds those of other distributions. Stands on the run's directory and the
drawings.
"""

from ecotour.contract.events import Sink

__all__ = ["Sink"]
