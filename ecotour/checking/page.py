"""The page of all findings, made from the table: ``python -m ecotour.checking.page``."""

from __future__ import annotations

from ecotour.checking.table import TABLE, fill

HEAD = """# What `ecotour check` finds

`ecotour check DEMO` and `ecotour check FILE.py` run a demo for a few steps, in a process of its own
without the network, and look for every fault below. A line of its output names the finding, the
place, the cause and the mend; this page has the same in full, and how each is proved. (The page is
made from the check's own table.)

A check uses small batches and few steps. Flags of the demo can be given after its name, as for
`ecotour run`; `--timeout SECONDS` gives a heavy demo more time. It runs on the CPU, where the same
program gives the same bits. Its last line says how many findings it looked for: those with a proof
of their own. The others come up by themselves, and most of them leave less to look for.
"""


def page() -> str:
    """The page as Markdown; each finding's name is a heading, and so an anchor."""
    fill()
    parts = [HEAD]
    for finding in TABLE.values():
        proof = "It comes up by itself, where the demo cannot be taken further."
        if finding.proof is not None:
            proof = " ".join((finding.proof.__doc__ or "").split())
            if finding.per == "step":
                proof += " Looked for in each compiled step."
        parts.append(
            f"## {finding.id}\n\n{finding.sentence}.\n\n"
            f"**Where it comes from.** {finding.cause}.\n\n"
            f"**How to mend it.** {finding.mend}.\n\n"
            f"**How it is proved.** {proof}\n"
        )
    return "\n".join(parts)


if __name__ == "__main__":
    print(page(), end="")
