"""Every error that ecotour raises on purpose.

::

    EcotourError                 one line for the user; `--debug` shows the traceback
    ├── UsageError               the command cannot be carried out as typed         exit 2
    │   └── UnknownNameError     no such demo, flag or file; knows the nearest one  exit 2
    ├── PluginError              a demo is not found, imported or built, or no JAX  exit 1
    ├── ContractError            a demo broke the contract while it ran             exit 1
    ├── DataError                data is missing, incomplete or altered             exit 1
    ├── RecordError              a run directory cannot be written or read          exit 1
    └── CheckpointError          a checkpoint cannot be written, read or matched    exit 1

A message names what is wrong, where, and how to mend it, in one line.
"""

from __future__ import annotations

from collections.abc import Iterable


class EcotourError(Exception):
    """The root of the tree. ``exit_code`` is what the command line ends with."""

    exit_code = 1
    shown_as_json = False
    """Whether a document that tells of it stands on standard output already."""


class UsageError(EcotourError):
    """The command cannot be carried out as it was typed."""

    exit_code = 2


class UnknownNameError(UsageError):
    """A name that does not exist; the message suggests the nearest one that does."""

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        """Say that ``name`` is no ``kind``, and which of ``known`` was probably meant."""
        import difflib

        choices = sorted(known)
        folded = name.casefold()  # what differs by case alone is nearest of all
        near = [one for one in choices if one.casefold() == folded][:1]
        near = near or difflib.get_close_matches(name, choices, n=1, cutoff=0.5)
        if not near:
            by_case = {one.casefold(): one for one in choices}
            found = difflib.get_close_matches(folded, by_case, n=1, cutoff=0.5)
            near = [by_case[one] for one in found]
        if near:
            mend = f"did you mean {near[0]}?"
        elif choices:
            mend = f"choose from {', '.join(choices)}"
        else:
            mend = "there are none"
        super().__init__(f"unknown {kind} {name!r}: {mend}{'; ' + hint if hint else ''}")
        self.suggestion = near[0] if near else None


class PluginError(EcotourError):
    """A demo could not be found, imported or built, or JAX cannot be started."""


class ContractError(EcotourError):
    """A demo broke the contract while it ran."""


class DataError(EcotourError):
    """Data is missing, incomplete or altered."""


class RecordError(EcotourError):
    """A run directory cannot be written or read."""


class CheckpointError(EcotourError):
    """A checkpoint cannot be written, read or matched to this run."""
