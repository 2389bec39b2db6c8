"""A check in a process of its own: two devices, no network, and a limit on the time.

The process is started with ``python -m ecotour.checking.apart FILE``, where FILE holds the order
as JSON; it writes the phases, and at last the report, to the file that the order names.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ecotour.checking.table import TABLE, Found, Report, fill
from ecotour.discovery import metadata
from ecotour.errors import EcotourError, UsageError
from ecotour.machine import variables

TIMEOUT_S = 1800.0
DEVICES = 2


def check(
    target: str,
    flags: Sequence[str] = (),
    *,
    disable: Sequence[str] = (),
    provider: str | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Report:
    """Check a demo.

    Args:
        target: A demo's name, or the path of its file.
        flags: Words of a command line for the demo's own flags.
        disable: Demos to treat as not installed.
        provider: The distribution to take the demo from.
        timeout_s: Seconds after which the check is broken off.

    Raises:
        EcotourError: There is no such demo, or it cannot be asked for.
    """
    with tempfile.TemporaryDirectory(prefix="ecotour-check-") as directory:
        order, answer = Path(directory) / "order", Path(directory) / "answer"
        asked = {
            "target": target,
            "flags": list(flags),
            "disable": list(disable),
            "provider": provider,
            "answer": str(answer),
        }
        order.write_text(json.dumps(asked), encoding="utf-8")
        answer.touch()
        began = time.monotonic()
        command = [sys.executable, "-m", "ecotour.checking.apart", str(order)]
        with (Path(directory) / "said").open("w+b") as said:
            process = subprocess.Popen(
                command, env=_environment(), stdin=subprocess.DEVNULL, stdout=said, stderr=said
            )
            try:
                code: int | None = process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
            said.seek(0)
            last = said.read().decode("utf-8", "replace").strip().splitlines()[-1:]
        return _read(answer, target, code, time.monotonic() - began, last)


def _read(answer: Path, target: str, code: int | None, seconds: float, last: list[str]) -> Report:
    phase = "its import"
    for line in answer.read_text(encoding="utf-8").splitlines():
        told = json.loads(line)
        if "phase" in told:
            phase = told["phase"]
        elif "refused" in told:
            error = UsageError if told["usage"] else EcotourError
            raise error(told["refused"])
        else:
            report = Report.of(told)
            report.seconds = seconds
            return report
    report = Report(demo=target, seconds=seconds)
    if code is None:
        report.found.append(Found("no-return", "", f"{seconds:.0f} s, while looking for {phase}"))
    else:
        words = f": {last[0]}" if last and code not in (0, 1) else ""
        detail = f"exit code {code}, while looking for {phase}{words}"
        report.found.append(Found("process-ended", "", detail))
    fill()
    report.unproved = {id: "the check broke off" for id, one in TABLE.items() if one.proof}
    return report


def _environment() -> dict[str, str]:
    flags = os.environ.get("XLA_FLAGS", "")
    return {
        **os.environ,
        # results of a GPU are not the same to the last bit, and it has no second device to force
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": f"{flags} --xla_force_host_platform_device_count={DEVICES}".strip(),
    }


def _main(order: dict[str, Any]) -> None:
    from ecotour.checking.targets import found_at_discovery, is_file, subject_for

    with Path(order["answer"]).open("a", encoding="utf-8", buffering=1) as answer:

        def tell(**told: Any) -> None:
            answer.write(json.dumps(told) + "\n")

        discovery = [] if is_file(order["target"]) else found_at_discovery(order["target"])
        began = time.process_time()
        if said := variables.fault():
            tell(refused=said, usage=False)
            return
        import jax

        from ecotour.checking import bench  # noqa: F401 - imports the runner, which is ours

        jax_cpu_s = time.process_time() - began
        try:
            subject = subject_for(
                order["target"],
                order["flags"],
                disable=order["disable"],
                provider=order["provider"],
            )
            subject.discovery, subject.jax_cpu_s = discovery, jax_cpu_s
            _use_cache(jax)
            from ecotour.checking.proving import prove
            from ecotour.checking.settings import settings

            subject.once("before", settings)
            report = prove(subject, lambda id: tell(phase=id))
        except EcotourError as error:
            tell(refused=str(error), usage=isinstance(error, UsageError))
            return
        tell(**report.document())


def _use_cache(jax: Any) -> None:
    """Keep compiled programs, so that a second build, and a second check, compile nothing."""
    from ecotour.machine import environment
    from ecotour.running import stages

    directory = environment.cache_directory() / "compiled"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # it takes longer without, and that is all
    stages.use_compilation_cache(directory)


if __name__ == "__main__":
    with metadata.forgiving():
        _main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
