"""What a check looks for and what it has found: the vocabulary of all proofs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

Per: TypeAlias = Literal["demo", "step", "stage"]
Proof: TypeAlias = Callable[..., Iterator[str]]


@dataclass(frozen=True)
class Finding:
    """One kind of fault.

    Attributes:
        id: Its name, and its anchor in ``docs/findings.md``.
        sentence: What is wrong, as a sentence without a full stop.
        cause: What this usually comes from, or what it leads to.
        mend: What to do about it.
        per: ``demo`` and ``step`` have a proof that is carried out once, or for each compiled
            named step; a ``stage`` comes up by itself where the demo cannot be taken further.
        proof: Yields a detail for each place where the fault is found.
        after: Findings that explain this one away: where one of them is there, this is not
            looked for.
    """

    id: str
    sentence: str
    cause: str
    mend: str
    per: Per = "stage"
    proof: Proof | None = None
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Found:
    """One finding in one place: ``of`` is the named step, or empty for the whole demo."""

    id: str
    of: str
    detail: str

    @property
    def line(self) -> str:
        """All there is to say, in one line."""
        finding = TABLE[self.id]
        of = f"step {self.of!r}: " if self.of else ""
        detail = f" ({' '.join(self.detail.split())})" if self.detail else ""
        return f"{self.id}: {of}{finding.sentence}{detail}. {finding.cause}. {finding.mend}."


@dataclass
class Report:
    """What a check has to say.

    Attributes:
        demo: The demo's name.
        distribution: Its distribution and version.
        found: The findings, in the order of the table.
        proved: Names of the findings that were looked for and are not there.
        unproved: Where something could not be looked for: the finding's name and why.
        seconds: How long it took.
    """

    demo: str = ""
    distribution: str = ""
    found: list[Found] = field(default_factory=list)
    proved: list[str] = field(default_factory=list)
    unproved: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def ids(self) -> list[str]:
        """Names of the findings, each once."""
        return list(dict.fromkeys(found.id for found in self.found))

    def document(self) -> dict[str, Any]:
        """As ``ecotour check --json`` prints it."""
        told = [
            asdict(found)
            | {k: getattr(TABLE[found.id], k) for k in ("sentence", "cause", "mend")}
            | {"page": f"findings.md#{found.id}"}
            for found in self.found
        ]
        return {
            "schema": 1,
            "demo": self.demo,
            "distribution": self.distribution,
            "passed": not self.found,
            "findings": told,
            "proved": self.proved,
            "unproved": self.unproved,
            "seconds": round(self.seconds, 3),
        }

    @classmethod
    def of(cls, document: dict[str, Any]) -> Report:
        """What `document` made."""
        return cls(
            document["demo"],
            document["distribution"],
            [Found(f["id"], f["of"], f["detail"]) for f in document["findings"]],
            document["proved"],
            document["unproved"],
            document["seconds"],
        )


class Fault(Exception):
    """The demo cannot be taken further; reported once, as the stage finding ``id``."""

    def __init__(self, id: str, detail: str, of: str = "") -> None:
        """Say what happened, and in which named step."""
        super().__init__(detail)
        self.id, self.detail, self.of = id, detail, of


class Unproved(Exception):
    """A proof that cannot be carried out here; the message says why."""


TABLE: dict[str, Finding] = {}
"""All findings by name, in the order in which they are looked for."""


def fill() -> None:
    """Enter all findings, in the order in which they are looked for."""
    for module in ("loading", "purity", "conduct", "switches"):
        importlib.import_module(f"ecotour.checking.{module}")


def stage(id: str, sentence: str, cause: str, mend: str) -> None:
    """Enter a finding that comes up by itself, as a `Fault`."""
    TABLE[id] = Finding(id, sentence, cause, mend)


def finding(
    id: str,
    sentence: str,
    cause: str,
    mend: str,
    *,
    per: Per = "demo",
    after: tuple[str, ...] = (),
) -> Callable[[Proof], Proof]:
    """Enter a finding with the proof that is decorated."""

    def enter(proof: Proof) -> Proof:
        TABLE[id] = Finding(id, sentence, cause, mend, per, proof, after)
        return proof

    return enter
