"""``ecotour check``: the contract, proved; one line a finding, with the cause and the mend."""

from __future__ import annotations

import argparse
import sys

from ecotour.checking.apart import check
from ecotour.checking.table import fill
from ecotour.cli import process
from ecotour.rundir.strict_json import to_json


def main(arguments: argparse.Namespace) -> int:
    """Check a demo: 0 without a finding, 1 with one."""
    with process.stdout_for_json(arguments.json, is_product=True) as stdout:
        report = check(
            arguments.demo,
            arguments.rest,
            disable=arguments.disable,
            provider=arguments.provider,
            timeout_s=arguments.timeout,
        )
        fill()
        if arguments.json:
            stdout.write(to_json(report.document(), indent=1) + "\n")
        else:
            for found in report.found:
                print(found.line)
            for id, why in report.unproved.items():
                if not why.startswith(("explained by", "stopped by", "the check broke off")):
                    print(f"not looked for: {id}: {why}", file=sys.stderr)
            name = f"{report.demo} ({report.distribution})" if report.distribution else report.demo
            count = "no finding" if not report.found else f"{len(report.found)} found"
            looked = len(report.proved) + len(report.ids)
            print(f"{name}: {count}, {looked} looked for, {report.seconds:.0f} s")
            if report.found:
                ids = ", ".join(report.ids)
                print(f"explained at length in docs/findings.md: {ids}", file=sys.stderr)
    return 1 if report.found else 0
