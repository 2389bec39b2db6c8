"""Whether a demo can be loaded, found out in a process of its own.

An import may do anything: call ``os._exit``, crash in compiled code, or never come to an end. What
it does to the child is said in one line; this process goes on, and has imported nothing.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ecotour.discovery.metadata import Entry

LIMIT_S = 120.0
"""Seconds that loading one demo may take. RLax, the slowest of ours, takes about ten."""


def proved(entry: Entry, limit_s: float = LIMIT_S) -> Entry:
    """``entry`` with what came of loading it: ``ok``, or ``broken`` with the reason.

    One that is not ``installed`` stays as it is, and is not loaded.
    """
    if entry.status != "installed":
        return entry
    reason = _trouble(entry, limit_s)
    return entry._replace(status="broken" if reason else "ok", reason=reason)


def _trouble(entry: Entry, limit_s: float) -> str:
    """Why a demo cannot be loaded, in one line; empty where it can."""
    with tempfile.TemporaryDirectory(prefix="ecotour-load-") as scratch:
        answer = Path(scratch) / "answer"
        order = json.dumps({"entry": entry, "path": sys.path, "answer": str(answer)})
        # -P: the current directory must not come before what is installed
        command = [sys.executable, "-P", "-m", "ecotour.discovery.apart", order]
        with (Path(scratch) / "said").open("w+b") as said:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=Path.cwd()
            )
            began = time.monotonic()
            try:
                code = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                seconds = time.monotonic() - began
                return f"it did not come to an end in {seconds:.0f} s while it was loaded"
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
            if code == 0 and answer.exists():
                return answer.read_text(encoding="utf-8")
            said.seek(0)
            last = said.read().decode("utf-8", "replace").strip().splitlines()[-1:]
        words = "".join(f": {line}" for line in last)
        return f"it ended the process ({_ending(code)}) while it was loaded{words}"


def _ending(code: int) -> str:
    try:
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"
    except ValueError:
        return f"signal {-code}"


def _main(order: str) -> None:
    asked = json.loads(order)
    sys.path[:] = asked["path"]
    from ecotour.discovery import metadata, registry
    from ecotour.errors import EcotourError

    entry, reason = Entry(*asked["entry"]), ""
    with metadata.forgiving():
        try:
            registry.load(entry)
        except EcotourError as error:
            reason = " ".join(str(error).split())
            reason = reason.removeprefix(f"demo {entry.name!r} ({entry.provenance})").lstrip(": ")
    Path(asked["answer"]).write_text(reason, encoding="utf-8", errors="replace")
    os._exit(0)  # whatever a thread or an exit handler of the demo's would still do


if __name__ == "__main__":
    _main(sys.argv[1])
